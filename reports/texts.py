"""What the page says in words: verdict levels, threat levels, forms, metrics, limits, glossary."""

VERDICTS = {
    "NOT_ASSESSED": (
        "Not assessed",
        "This run supports no statement about leakage, neither that there is some nor that there is none. "
        "The numbers below are shown for inspection only.",
    ),
    "NO_IMAGE_LEAKAGE_FOUND": (
        "No image leakage found",
        "None of the declared attacks met the rules for a leak. A stronger attacker still might: an audit is a lower "
        "bound on leakage. Groups of images too few to judge are named; what leaks without any attack is listed below.",
    ),
    "CLASS_LEVEL": (
        "Class-level leakage",
        "The uploads show what the images of a class, or of a client, look like in general. "
        "The stricter rule for single images was not met; the most exposed ones are listed below all the same.",
    ),
    "SAMPLE_LEVEL": (
        "Sample-level leakage",
        "The uploads give away single private images: they can be picked out, and rebuilt better than by guessing.",
    ),
}

THREAT_LEVELS = {
    "Q0": ("the server alone", "uploads, its own classifier and public images"),
    "Q1": ("a server that knows the model", "Q0 and the client's architecture"),
    "Q2": ("a colluding client or a public backbone", "Q1 and answers of the client's encoder to its queries"),
    "Q3": ("the auditor's worst case", "Q2 and the encoder's weights"),
}

FORMS = {
    "raw": "One representation per private image, with its label.",
    "prototype": "One mean representation per class the client holds, with the class label.",
    "entangled": "One vector per client and round: a random mixture of its prototypes, with the mixture of labels.",
}

METRICS = {
    "psnr": "PSNR",
    "mse": "MSE",
    "ssim": "SSIM",
    "retrieval_top1": "Picked out, first guess",
    "retrieval_top5": "Picked out, five guesses",
    "retrieval_mrr": "Picked out, mean reciprocal rank",
    "membership_auc": "Membership, AUC",
    "membership_tpr_at_1pct": "Membership found at 1 % false alarms",
    "evaluator_accuracy": "Class recognised",
}

TARGETS = {
    "members": "every image that contributed",
    "class_mean": "mean private image of the class",
    "mixture": "weighted mean image of the upload",
    "best": "best member, chosen by truth (optimistic)",
}

SLICES = {
    "all": "all",
    "n1": "classes of 1 image",
    "n2-5": "classes of 2–5 images",
    "n6-19": "classes of 6–19 images",
    "n20+": "classes of 20 or more images",
    "top1%": "the 1 % of images that leak most",
}
BY_SIZE = ("n1", "n2-5", "n6-19", "n20+")

SECTIONS = {"competence": "Were the attackers any good?", "unmixing": "Can the mixture be undone?",
            "table": "Every form, attack and level"}  # fmt: skip
NEEDS = {
    "Q1": "the client's architecture",
    "Q2": "answers of the client's encoder to queries, as a colluding client or a public backbone gives them",
    "Q3": "the weights of the client's encoder",
}
"""What an attacker of a level holds that the server of a model-heterogeneous federation does not."""
AGAINST = {"mean_image": "the mean image", "best": "the best floor"}
GUESS = {"mean_image": "the mean image", "best": "the best guess"}
"""Which floor a number is, where it stands under that name."""
NO_CEILING = {
    True: "raw representations are compared with single images, not with a {target}",
    False: "this attacker has no row on the raw representations of these images",
}
"""Why a number has no ceiling, by whether its target is no single image."""

SELECTED = ("RSR", "RSP")
"""Mechanisms that send one item, selected at random, as it is."""
KINDS = {
    "class_set": "the classes it holds",
    "label_histogram_exact": "the exact share of each class among its images",
    "label_histogram_estimated": "about the share of each class among its images",
    "mixing_weights_rounds": "rounds whose exact mixing weights are known",
    "class_weights_rounds": "rounds that tell the weight of each class, not of each image",
    "one_image_class": "a class of one image",
    "encoder_collapsed": "its encoder answers every image alike, so what it sends tells nothing about any of them",
    "one_class_client": "holds one class",
}
"""Kinds of disclosures and flags; one that is not listed is shown by its name."""
ONE_IMAGE = {
    "raw": ", whose representation is sent with its label",
    "prototype": ", so its prototype is that image's representation",
    "entangled": ", so the part of the mixture that is of this class is that image's representation",
    "RSP": ", so its prototype, sent whenever it is selected, is that image's representation",
    "RSR": ", so its label names the image whenever it is selected",
}
ONE_CLASS = {
    "raw": ", so every row that it sends is of that class",
    "prototype": ", so it sends the prototype of that class alone",
    "entangled": ", so its mixture is that class's prototype",
    "RAR": ", so its mixture is of the images of that class alone",
    "RSP": ", so it sends that class's prototype each time",
    "RSR": ", so every image that it sends is of that class",
}
KINDS_OF: dict[str, dict[str, str]] = {
    "one_image_class": {who: KINDS["one_image_class"] + more for who, more in ONE_IMAGE.items()},
    "one_class_client": {who: KINDS["one_class_client"] + more for who, more in ONE_CLASS.items()},
    "class_set": dict.fromkeys(SELECTED, "classes seen in its uploads"),
    "label_histogram_estimated": {"RSR": "share of each class among the images that it sent"},
    "mixing_weights_rounds": {
        "RAR": KINDS["class_weights_rounds"],
        "RSR": "rounds that tell the class of the image that was sent",
        "RSP": "rounds that tell the class of the prototype that was sent",
    },
    "class_weights_rounds": {"RSR": "rounds that tell the class of the image that was sent"},
}
"""What a kind means for a form or, where the mechanism changes it, for a mechanism; else KINDS says it."""
BY_CLASS = ("class_set", "label_histogram_exact", "label_histogram_estimated")
"""Disclosures whose values are class numbers, or shares by class number."""

LIMITS = (
    "An audit is a lower bound: it shows what these attackers got, and a better one may get more. "
    "Only a proof, such as differential privacy, bounds leakage from above.",
    "Levels Q2 and Q3 give the attacker the client's encoder, which a server of a federation with different "
    "models may not have. Level Q0 is the server alone.",
    "A prototype or a mixture has no single true image. What a reconstruction is compared with is named in "
    "every row as its target.",
    "Intervals are t-intervals over clients, or over images where there are fewer than 4 clients. A t-interval knows "
    "no bounds: those of shares, rates and AUCs are cut at 0 and 1, and those of differences of shares are shown cut "
    "at −100 and +100 points.",
    "The server watches and does not cheat. A server that steers what it sends out could learn more.",
    "Pixel similarity is not recognisability. A low PSNR does not mean that nothing leaked; read it beside the "
    "floor, and beside how often the image was picked out.",
    "The result holds for this data set, these models, these seeds and this many rounds.",
)

GLOSSARY = {
    "Ceiling": "the same attacker given the raw representations of the same images: the most this attacker "
    "gets through this encoder.",
    "Class-level": "what a class or a client looks like in general leaks, not a single image.",
    "Competence": "checks with a known right answer that an attacker must pass before its failure means anything.",
    "Entangled representation": "a random mixture of a client's class prototypes, sent as one vector (FedRE).",
    "Floor": "the best guess from public images and the labels that are sent along, without the representation.",
    "Gain": "value minus floor, paired per client: what the upload added to guessing.",
    "Interval": "95 % confidence interval, over clients unless it says images.",
    "Points": "a difference of two shares: from 10 % to 25 % is +15 points.",
    "MSE": "mean squared pixel error on the 0–255 scale; lower is closer to the private image.",
    "Permuted": "the attacker is given someone else's upload; a real leak must beat this.",
    "Picked out": "how often the right private image is found among the candidates from the reconstruction.",
    "Prototype": "the mean representation of a client's images of one class.",
    "PSNR": "closeness to the private image in decibels; higher is closer.",
    "Sample-level": "single private images leak.",
    "SSIM": "structural similarity, at most 1; higher is closer.",
    "Stream": "how many rounds of uploads the attacker used.",
    "Unmixing": "solving for the prototypes from many rounds of mixtures whose weights are known.",
}

MECHANISMS = {
    "RAP": "random weights, a mean of all its prototypes",
    "VAP": "vanilla (equal) weights, a mean of all its prototypes",
    "RSP": "one prototype, selected at random, as it is",
    "RAR": "random weights, a mean of the representations of all its images",
    "VAR": "vanilla (equal) weights, a mean of the representations of all its images",
    "RSR": "the representation of one image, selected at random, as it is",
    "fixed": "the random weights are drawn once per client and kept; else they are drawn anew each round",
}
"""How a client entangles. Letters: R random or V vanilla weights; A all or S a single one; R representations or
P prototypes. The paper spells out RAP alone; the others are read from their letters."""

VOLATILE = {"created": "Made", "seconds": "Seconds", "peak_memory_mb": "Peak memory, MB", "host": "Machine"}

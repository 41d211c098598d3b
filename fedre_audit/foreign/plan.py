"""What can be said with what the auditor has, and what to add for more; printed before any work."""

from attacks.base import ATTACKS
from fedre_audit.foreign.config import ForeignConfig
from fedre_audit.foreign.uploads import ForeignUploads

Line = tuple[str, str, str]


def plan(config: ForeignConfig, found: ForeignUploads) -> list[Line]:
    """(what, yes or no, why or what to add) of every kind of finding."""
    heads = "with" if found.broadcast else "without"
    uploads = (
        f"{found.form}{f' ({found.mechanism})' if found.mechanism else ''} of {len(found.ids)} clients, "
        f"{len(found.rounds)} rounds, width {found.feature_width}, {found.classes} classes, {heads} broadcasts"
    )
    if found.form != "entangled":
        unmixing = ("no", f"{found.form} uploads are not mixed")
    elif len(found.rounds) < 2:
        unmixing = ("no", "one round is not enough; record more rounds")
    else:
        unmixing = ("yes", "level Q0, each client's prototypes with their predicted error")
    attacks = ", ".join(f"{name} ({ATTACKS[name].level})" for name in config.attacks)
    decoders = ("yes", f"by {attacks}") if config.encoder else ("no", "add --auxiliary, and --encoder with --weights")
    missing = [
        option
        for option, there in (
            ("--truth", config.truth),
            ("--auxiliary", config.auxiliary),
            ("--encoder", config.encoder),
        )
        if not there
    ]
    scores = (
        ("yes", "against the private images, beside floors and ceiling")
        if not missing
        else ("no", f"add {', '.join(missing)}: a number without them would mean nothing")
    )
    exposed = ("yes", "classes of one image, clients of one class") if config.truth else ("no", "add --truth")
    return [
        ("uploads", "yes", uploads),
        ("disclosures", "yes", "what the label encodings tell without any attack"),
        ("unmixing", *unmixing),
        ("reconstructions", *decoders),
        ("exposed clients", *exposed),
        ("scores and verdict", *scores),
    ]


def plan_text(config: ForeignConfig, found: ForeignUploads) -> str:
    """The plan as aligned lines."""
    lines = [f"  {what:<20}{answer:<5}{why}" for what, answer, why in plan(config, found)]
    renamed = [f"{i} is your {own}" for i, own in enumerate(found.ids) if i != own]
    if renamed:
        more = ", ..." if len(renamed) > 5 else ""
        lines.append(f"  clients are numbered from 0: {', '.join(renamed[:5])}{more} (foreign.json)")
    return "\n".join(["plan", *lines])

"""Progress of work whose size shows late."""

from fedre_audit.progress import late


def test_tells_once_at_the_end_and_again_for_a_second_piece_of_work(capsys):
    with late("load images") as tell:
        for done in (300, 700, 1000):
            tell(done, 1000)
        tell(7, 7)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["load images: 100/100"] * 2
    assert "1,000 of 1,000" in lines[0]
    assert "7 of 7" in lines[1]


def test_nothing_is_said_where_nothing_happens_or_quiet_is_asked(capsys):
    with late("load images"):
        pass
    with late("load images", quiet=True) as tell:
        tell(5, 5)
    assert capsys.readouterr().err == ""

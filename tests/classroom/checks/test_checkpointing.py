from attempts import checkpointing as attempts

from workbook.classroom.study.verbs import check


def test_one_missing_half_is_wrong(judged_here):
    def raising(*arguments):
        raise NotImplementedError

    for half in (None, raising):
        for pair in ((attempts.save, half), (half, attempts.load)):
            report = check("checkpointing", pair)
            assert report.status == "wrong" and "is still" in report.claim, report


def test_no_file_is_left_behind(tmp_path, monkeypatch, judged_here):
    monkeypatch.chdir(tmp_path)
    check("checkpointing", (attempts.save, attempts.load))
    assert list(tmp_path.iterdir()) == []

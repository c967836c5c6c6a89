"""Records can be kept in a folder of their own for a while; more of records is in test_plans.py."""

from made_records import config, record

from workbook.experiments import records


def test_records_in_a_temporary_folder_do_not_mix_with_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    usual, other = config(), config(seed=1)
    record(tmp_path / "runs", usual, [4.0, 3.0])
    with records.temporary_folder() as folder:
        assert records.folders() == (folder,)
        assert records.find(usual) is None
        record(folder, other, [4.0, 2.0])
        assert records.find(other).loss == 2.0
        assert [result.config for result in records.load_all()] == [other]
    assert not folder.exists()
    assert records.find(other) is None
    assert records.find(usual).loss == 3.0

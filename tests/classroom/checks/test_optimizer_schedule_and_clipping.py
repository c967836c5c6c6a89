from workbook.classroom.study.verbs import check


def test_the_first_wrong_step_of_a_schedule_stands_beside_the_right_one(judged_here):
    report = check("learning_rate_schedule", lambda it, a, b, w, c: a)
    rows = dict(report.rows)
    assert rows == {"input": "schedule(0, 0.8, 0.1, 4, 12)", "expected": "0", "got": "0.8"}

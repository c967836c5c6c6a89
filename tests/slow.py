"""The files whose tests are slow, and of each the tests that are quick all the same.

Slow is what starts processes, trains, typesets, drives a browser or waits for a time limit. In any
other file, slow tests are marked one by one. `make check` takes the quick ones: at least one of
every file, as `test_runner.py` demands, so that most breaks show in a good minute.

A test is named as a function, for all its parameters, or with those of one case.
"""

QUICK_OF_SLOW = {
    "classroom/checks/test_bpe.py": [
        "test_a_wrong_form_is_told",
        "test_the_failing_input_is_the_smallest_one",
        "test_the_reference_agrees_with_the_package",
    ],
    "classroom/checks/test_catalogue.py": ["test_what_is_not_edited_is_right[softmax]"],
    "classroom/checks/test_mutants.py": ["test_every_mutant_of_softmax_is_refused"],
    "classroom/checks/test_own_answers.py": [
        "test_no_answer_of_ours_is_called_wrong[01_unicode-2025]",
        "test_no_answer_of_ours_is_called_wrong[02_bpe-2026]",
    ],
    "classroom/checks/test_timeout.py": [
        "test_an_attempt_that_hangs_is_stopped[loops]",
        "test_a_busy_machine_is_not_the_codes_fault",
        "test_processor_time_counts_of_all_children_together_and_waiting_as_well",
    ],
    "classroom/checks/test_tokenizer.py": [
        "test_what_is_wrong_with_encode_and_with_decode_is_told_at_once",
        "test_the_failing_input_is_the_smallest_one",
        "test_a_class_that_is_half_written_is_told_what_passes",
        "test_a_mistake_in_a_half_written_class_is_still_found",
        "test_the_small_reference_agrees_with_the_package",
    ],
    "classroom/checks/test_training_together.py": [
        "test_what_is_not_there_is_not_attempted",
        "test_what_is_not_in_the_contract_is_told_the_contract",
    ],
    "classroom/checks/test_transfer.py": [
        "test_threads_that_copy_at_the_same_time_do_not_disturb_one_another",
    ],
    "classroom/checks/test_worker.py": [
        "test_values_and_errors_come_back_in_order_and_what_came_before_a_crash",
    ],
    "classroom/mine/test_adapters.py": [
        "test_an_adapter_that_does_something_else_differs[run_linear]",
        "test_a_study_folder_without_solutions_is_refused",
    ],
    "classroom/mine/test_check_all.py": [
        "test_a_fault_of_ours_judges_nothing_and_stops_nothing",
    ],
    "classroom/mine/test_now_yours.py": ["test_every_notebook_with_parts_has_its_cell"],
    "classroom/mine/test_twin.py": ["test_a_part_that_fails_is_named"],
    "classroom/export/test_pdf.py": ["test_very_long_words_may_be_broken"],
    "classroom/export/test_write.py": [
        "test_wrong_answers_and_attempts_are_marked_as_such",
        "test_without_the_extra_the_way_to_install_it_is_told",
    ],
    "classroom/study/test_lab.py": [
        "test_what_is_served_holds_the_study_folder",
        "test_the_study_folder_that_we_are_in_is_opened",
        "test_root_is_allowed_only_where_it_is_root",
        "test_a_browser_is_opened_only_where_there_is_one_with_a_window",
    ],
    "classroom/study/test_labextension.py": [
        "test_a_worked_notebook_is_as_jupyterlab_has_it",
    ],
    "classroom/views/test_every_view.py": [
        "test_every_plot_is_tried",
        "test_every_live_view_is_tried",
        "test_its_stored_form_is_a_picture_and_words_which_follow_the_controls[merge_stepper]",
    ],
    "experiments/test_plans.py": [
        "test_a_run_that_the_clock_ends_has_the_machine_for_itself",
        "test_only_a_long_run_is_compiled",
        "test_a_worker_that_is_killed_is_told",
        "test_says_what_there_is_instead",
    ],
    "test_bench.py": [
        "test_the_best_of_several_times_and_the_longest_are_kept",
        "test_a_busy_machine_is_told_from_a_quiet_one",
    ],
    "test_browser.py": ["test_every_live_view_of_the_notebooks_is_tried"],
    "test_runner.py": [
        "test_make_check_has_a_case_of_every_test_file",
    ],
    "test_setup.py": [
        "test_what_set_up_needs_is_said_in_one_line",
        "test_the_newest_python_that_works_is_taken",
    ],
    "test_wheel.py": ["test_a_wheel_holds_what_is_in_git_and_nothing_of_its_user"],
    "tokenization/test_cluster.py": [
        "test_the_cluster_gives_the_merges_and_ids_of_one_process[readable]",
    ],
    "tokenization/test_kernels.py": [
        "test_each_kind_of_processor_has_code_of_its_own",
        "test_an_argument_of_another_type_is_refused",
        "test_a_kernel_that_is_defined_too_late_is_refused",
        "test_a_call_that_can_be_made_again_holds_its_arrays",
    ],
    "training/test_train.py": [
        "test_the_model_learns_and_the_log_tells_the_whole_run",
        "test_other_seeds_are_refused",
        "test_a_batch_that_cannot_be_shared_out_is_refused",
    ],
    "training/test_train_in_processes.py": [
        "test_two_processes_train_as_one_and_a_signal_to_one_saves_and_stops_both",
    ],
    "training/test_train_killed.py": [
        "test_a_killed_run_that_two_processes_finish_has_the_same_bits",
    ],
}

//! The list of the suite's tests. A function that is missing here is dead code, which the compiler reports.

/// Declares every test of the suite for one subject.
macro_rules! every_test {
    ($subject:ty) => {
        $crate::suite::tests! {
            $subject:
            backup {
                a_backup_after_a_mark_is_smaller_also_after_a_restart,
                purged_conversations_are_listed_in_their_order,
            }
            draft {
                pieces_are_kept_in_order_and_only_where_the_draft_stops,
                an_older_try_gives_way_and_does_not_come_back,
                a_draft_outlives_a_restart_and_goes_on_where_it_stopped,
                an_end_that_is_refused_keeps_the_draft,
                a_reply_of_ten_thousand_deltas_is_one_message,
                a_draft_has_limits_that_name_themselves,
                a_piece_of_an_ended_try_is_dropped_for_ever,
            }
            hostile {
                names_and_labels_with_control_characters_are_refused,
                nothing_in_a_file_keeps_it_from_being_held,
                the_same_op_imports_once_and_holds_once,
                a_small_file_does_not_unpack_to_a_large_one,
            }
            journal {
                a_claim_counts_up_and_makes_no_agent,
                an_append_is_stored_whole_or_not_at_all,
                a_load_is_the_fold_of_all_events,
                a_window_of_a_conversation_that_does_not_exist_is_refused,
                a_restart_keeps_everything,
                verify_and_checkpoint_change_nothing,
            }
            list {
                every_line_comes_once_whatever_the_page_and_the_order,
                a_line_says_what_the_journal_says,
                what_agents_have_spent_is_added_up,
                spending_is_told_by_conversation_model_and_day,
            }
            lookup {
                turns_are_found_by_number_and_by_id,
                agents_and_turns_are_found_by_a_range_of_ids,
                silences_are_listed_in_their_order_and_go_with_a_prompt,
                schedules_are_listed_by_their_due_times_and_wait_while_the_agent_is_stopped,
                agents_with_background_tasks_are_found_until_the_tasks_end,
            }
            names {
                names_and_old_names_lead_to_their_agent_and_to_no_other,
                an_alias_gives_way_to_a_new_name,
            }
            ownership {
                a_second_owner_makes_the_first_one_stale_for_everything,
                what_is_sent_again_is_applied_once_also_after_a_restart,
                the_counter_survives_snapshots_and_a_long_time_without_it,
                a_counter_that_skips_or_an_incarnation_that_is_over_is_refused,
                of_two_who_expect_the_same_generation_one_gets_it,
                what_is_refused_before_the_disk_is_asked_names_its_limit,
            }
            portable {
                an_imported_agent_is_the_agent_that_was_exported,
                what_was_purged_stays_purged_and_what_is_kept_apart_comes_along,
                an_agent_that_is_there_is_imported_as_a_copy_with_a_chain_of_its_own,
                an_agent_that_is_there_or_a_name_that_is_taken_is_refused,
                an_ancestor_that_lives_here_is_not_written_to_by_an_import,
                a_file_that_is_cut_changed_or_not_ours_imports_nothing,
                a_flipped_bit_in_the_packed_file_is_refused_or_changes_nothing,
                a_branch_in_the_same_agent_is_exported_with_it,
                a_branch_of_text_that_was_purged_here_is_not_imported,
            }
            purge {
                tree_tasks_and_cost_fold_as_before_and_nothing_leads_back,
                the_current_conversation_and_one_that_a_fork_needs_are_refused_by_name,
                an_owner_of_yesterday_purges_nothing,
                purging_again_finds_nothing_and_leaves_the_rest_searchable,
                what_would_be_purged_is_what_a_purge_deletes,
            }
            purge_files {
                the_oldest_contents_go_and_the_conversation_stays,
                a_count_that_does_not_match_is_corrected,
                an_owner_of_yesterday_purges_no_files,
                a_purge_of_a_conversation_takes_its_files_along,
                what_was_purged_is_exported_imported_and_forked_without_it,
            }
            search {
                words_phrases_and_combinations_are_found_where_they_stand,
                pages_give_every_hit_once_newest_first,
                a_query_that_makes_no_sense_is_told_so,
                the_index_catches_up_after_a_restart,
            }
            tail {
                every_event_comes_once_and_in_order_while_appends_race,
                it_is_woken_by_the_commit_and_by_nothing_else,
                an_unknown_agent_has_no_journal_to_follow,
                pages_of_one_agent_and_of_all_give_every_event_once,
                a_page_has_the_events_of_a_time,
                every_commit_wakes_who_waits_for_any,
                a_cursor_leads_on_after_a_restart_and_new_events,
                a_text_that_is_no_cursor_is_refused,
            }
        }
    };
}

macro_rules! tests {
    ($subject:ty: $($group:ident { $($name:ident,)* })*) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[test]
                    fn $name() {
                        $crate::run::run($crate::$group::$name::<$subject>());
                    }
                )*
            }
        )*
    };
}

pub(crate) use {every_test, tests};

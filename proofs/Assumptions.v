(* What the theorems rest on: nothing but the logic of Coq. `make proofs` looks at the answer. *)

From Relaxdp Require Import Path Privacy Bridge Rejection Encodings.

Definition all_theorems :=
  ((@draw_uniform, @path_is_chain, @one_report, @two_reports, @markov, @newest_says_all, @any_order),
   (@private, @private_is_reached, @private_for_readers, @strings_come_to_the_law),
   (@bridge_keeps_the_chain, @blur_keeps_the_chain, @algorithm_1_is_path),
   (@kept_private, @wave_private, @rows_private, @optimised_private)).

Print Assumptions all_theorems.

(* What follows from path = chain: all that is read from a path costs what its newest report costs.

   In any order, any number of times, and at levels that are chosen from what was seen before. *)

From Coq Require Import Arith Lia List Bool QArith Qcanon Permutation.
From Relaxdp Require Import Numbers Path.
Import ListNotations.
Open Scope Qc_scope.

Section Privacy.

Variables N m : nat.
Hypothesis some_values : (0 < m)%nat.
Hypothesis words_suffice : (m <= N)%nat.

Local Notation path := (path N m).
Local Notation law := (law N m).
Local Notation blur := (blur m).
Local Notation chain := (chain m).
Local Notation falling := (falling m).
Local Notation path_is_chain := (path_is_chain N m some_values words_suffice).
Local Notation law_ext := (law_ext N m some_values words_suffice).
Local Notation law_zero := (law_zero N m some_values words_suffice).

(* One report is a randomized response at its own level, whatever else is read. *)

Corollary one_report x T o : (0 < T <= N)%nat -> (o < m)%nat -> path x [(T, o)] = blur (num T / num N) x o.
Proof. intros HT Ho. rewrite path_is_chain by (simpl; auto). simpl. ring. Qed.

(* Two levels. *)

Corollary two_reports x T o S p : (0 < S <= T)%nat -> (T <= N)%nat -> (o < m)%nat -> (p < m)%nat ->
  path x [(T, o); (S, p)] = blur (num T / num N) x o * blur (num S / num T) o p.
Proof. intros HS HT Ho Hp. rewrite path_is_chain by (simpl; repeat split; lia). simpl. ring. Qed.

(* All older reports, given the newest, have a law that does not know the truth. *)

Corollary markov x T o t : falling N ((T, o) :: t) -> path x ((T, o) :: t) = path x [(T, o)] * chain T o t.
Proof.
  intros F. rewrite path_is_chain by exact F. destruct F as [HT [Ho F]].
  rewrite one_report by assumption. reflexivity.
Qed.

(* So all reports together say of two truths what the newest one says. *)

Corollary newest_says_all x y T o t : falling N ((T, o) :: t) ->
  path x ((T, o) :: t) * path y [(T, o)] = path y ((T, o) :: t) * path x [(T, o)].
Proof. intros F. rewrite (markov x T o t F), (markov y T o t F). ring. Qed.

(* The order in which levels are read does not matter. *)

Lemma shows_in_any_order d x t t' : Permutation t t' -> shows d x t = shows d x t'.
Proof.
  unfold shows. induction 1 as [| seen t t' _ IH | one two t | t t' t'' _ IH _ IH']; simpl.
  - reflexivity.
  - rewrite IH. reflexivity.
  - rewrite !andb_assoc. f_equal. apply andb_comm.
  - rewrite IH. exact IH'.
Qed.

Corollary any_order x t t' : Permutation t t' -> path x t = path x t'.
Proof. intros P. apply law_ext; [lia|]. intros d. f_equal. apply shows_in_any_order. exact P. Qed.

Definition possible (top : nat) (t : transcript) : Prop :=
  forall T o, In (T, o) t -> (0 < T <= top)%nat /\ (o < m)%nat.

Lemma falling_weaker L L' t : (L <= L')%nat -> falling L t -> falling L' t.
Proof. intros H. destruct t as [|[T o] t]; [trivial|]. intros [HT [Ho F]]. repeat split; try lia. exact F. Qed.

Lemma insert T o : (o < m)%nat -> forall t L, (0 < T <= L)%nat -> falling L t ->
  exists t', Permutation ((T, o) :: t) t' /\ falling L t'.
Proof.
  intros Ho. induction t as [|[S p] t IH]; intros L HT F.
  - exists [(T, o)]. split; [apply Permutation_refl | simpl; auto].
  - destruct F as [HS [Hp F]]. destruct (le_lt_dec T S) as [H|H].
    + destruct (IH S) as [t' [P F']]; [lia | exact F |].
      exists ((S, p) :: t'). split; [|simpl; auto].
      apply Permutation_trans with ((S, p) :: (T, o) :: t); [apply perm_swap | apply perm_skip; exact P].
    + exists ((T, o) :: (S, p) :: t). split; [apply Permutation_refl|]. simpl. repeat split; try lia. exact F.
Qed.

Lemma in_order top t : possible top t -> exists t', Permutation t t' /\ falling top t'.
Proof.
  induction t as [|[T o] t IH]; intros H.
  - exists []. split; [apply Permutation_refl | exact I].
  - destruct IH as [t' [P F]]; [intros S p HS; apply H; right; exact HS|].
    destruct (H T o) as [HT Ho]; [left; reflexivity|].
    destruct (insert T o Ho t' top HT F) as [t'' [P' F']].
    exists t''. split; [|exact F']. apply Permutation_trans with ((T, o) :: t'); [apply perm_skip; exact P | exact P'].
Qed.

(* Privacy. *)

Lemma blur_not_negative T L from to : (0 < L)%nat -> (T <= L)%nat -> 0 <= blur (num T / num L) from to.
Proof.
  intros HL HT. unfold blur. apply plus_not_negative.
  - apply mult_not_negative; [|apply is_not_negative].
    apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; exact HL].
  - apply mult_not_negative; [|apply inverse_not_negative; exact some_values].
    replace (1 - num T / num L) with (num (L - T) * / num L)
      by (rewrite num_minus by exact HT; field; apply num_nonzero; exact HL).
    apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; exact HL].
Qed.

Lemma chain_not_negative t : forall L from, (0 < L)%nat -> falling L t -> 0 <= chain L from t.
Proof.
  induction t as [|[T o] t IH]; intros L from HL F; simpl; [apply Qclt_le_weak, one_positive|].
  destruct F as [HT [Ho F]].
  apply mult_not_negative; [apply blur_not_negative; lia | apply IH; [lia | exact F]].
Qed.

(* One report at T <= top: its chances under two truths differ by no more than the odds of top. *)

Lemma compute_blur_retention T top x y o : (0 < T <= top)%nat -> (top <= N)%nat ->
  blur (num T / num N) x o * num (N - top) <= blur (num T / num N) y o * num (N - top + m * top).
Proof.
  intros HT Htop. assert (NN : num N <> 0) by (apply num_nonzero; lia).
  assert (MM : num m <> 0) by (apply num_nonzero; exact some_values).
  assert (A : 0 <= num T / num N) by (apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; lia]).
  assert (B : 0 <= 1 - num T / num N).
  { replace (1 - num T / num N) with (num (N - T) * / num N) by (rewrite num_minus by lia; field; exact NN).
    apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; lia]. }
  rewrite num_plus, num_mult. unfold blur.
  set (q := is (o =? y)%nat). assert (Q : 0 <= q) by apply is_not_negative.
  destruct (o =? x)%nat; simpl is.
  - apply by_difference with (num T / num N * q * (num (N - top) + num m * num top) + num (top - T)).
    + apply plus_not_negative; [|apply num_not_negative].
      apply mult_not_negative; [apply mult_not_negative; assumption|].
      apply plus_not_negative; [|apply mult_not_negative]; apply num_not_negative.
    + rewrite !num_minus by lia. field. split; assumption.
  - apply by_difference with (num T / num N * q * (num (N - top) + num m * num top) + (1 - num T / num N) * num top).
    + apply plus_not_negative; [|apply mult_not_negative; [exact B | apply num_not_negative]].
      apply mult_not_negative; [apply mult_not_negative; assumption|].
      apply plus_not_negative; [|apply mult_not_negative]; apply num_not_negative.
    + rewrite !num_minus by lia. field. split; assumption.
Qed.

(* Whatever is read from a path, in any order, up to a highest threshold `top`: no transcript is likelier under one
   truth than (N - top + m top) / (N - top) = 1 + m r / (1 - r) times what it is under another, r = top / N. *)

Theorem private x y top t : (top <= N)%nat -> possible top t ->
  path x t * num (N - top) <= path y t * num (N - top + m * top).
Proof.
  intros Htop H. destruct (in_order top t H) as [t' [P F]].
  rewrite (any_order x t t' P), (any_order y t t' P).
  assert (FN : falling N t') by (apply (falling_weaker top); assumption).
  rewrite !path_is_chain by exact FN.
  destruct t' as [|[T o] t']; simpl.
  - rewrite num_plus. apply by_difference with (num (m * top)); [apply num_not_negative | ring].
  - destruct F as [HT [Ho F]].
    replace (blur (num T / num N) x o * chain T o t' * num (N - top))
      with (blur (num T / num N) x o * num (N - top) * chain T o t') by ring.
    replace (blur (num T / num N) y o * chain T o t' * num (N - top + m * top))
      with (blur (num T / num N) y o * num (N - top + m * top) * chain T o t') by ring.
    apply Qcmult_le_compat_r; [apply compute_blur_retention; lia | apply chain_not_negative; [lia | exact F]].
Qed.

(* The bound is reached by a single report of the truth. *)

Theorem private_is_reached x y T : (0 < T <= N)%nat -> (x < m)%nat -> x <> y ->
  path x [(T, x)] * num (N - T) = path y [(T, x)] * num (N - T + m * T).
Proof.
  intros HT Hx D. rewrite !one_report by assumption. unfold blur.
  rewrite Nat.eqb_refl. replace (x =? y)%nat with false by (symmetry; apply Nat.eqb_neq; exact D). simpl is.
  rewrite num_plus, num_mult, num_minus by lia. field. split; apply num_nonzero; lia.
Qed.

(* Levels that are chosen from earlier reports. A reader says, given what was seen so far, at which threshold to read
   next, or stops; `run` is what is then seen. *)

Definition reader := transcript -> option nat.

Fixpoint run (steps : nat) (next : reader) (past : transcript) (d : draws) (truth : nat) : transcript :=
  match steps with
  | O => []
  | S steps =>
      match next past with
      | None => []
      | Some T => let seen := (T, report d T truth) in seen :: run steps next (past ++ [seen]) d truth
      end
  end.

Fixpoint follows (steps : nat) (next : reader) (past t : transcript) : bool :=
  match steps, t with
  | O, [] => true
  | O, _ :: _ => false
  | S steps, [] => match next past with None => true | Some _ => false end
  | S steps, (T, o) :: rest =>
      match next past with
      | None => false
      | Some U => (U =? T)%nat && follows steps next (past ++ [(T, o)]) rest
      end
  end.

Fixpoint same (t t' : transcript) : bool :=
  match t, t' with
  | [], [] => true
  | (T, o) :: t, (U, p) :: t' => (T =? U)%nat && (o =? p)%nat && same t t'
  | _, _ => false
  end.

Lemma same_is_equal t : forall t', same t t' = true <-> t = t'.
Proof.
  induction t as [|[T o] t IH]; intros [|[U p] t']; simpl; split; try reflexivity; try discriminate.
  - rewrite !andb_true_iff, !Nat.eqb_eq, IH. intros [[-> ->] ->]. reflexivity.
  - intros E. injection E as -> -> E. rewrite !Nat.eqb_refl. simpl. apply IH. exact E.
Qed.

Lemma run_is_follows steps next d x : forall past t,
  same (run steps next past d x) t = follows steps next past t && shows d x t.
Proof.
  induction steps as [|steps IH]; intros past [|[T o] t]; simpl; try reflexivity.
  - destruct (next past); reflexivity.
  - destruct (next past) as [U|]; [|reflexivity].
    simpl.
    destruct (Nat.eqb_spec U T) as [->|D]; [|reflexivity]. simpl.
    destruct (Nat.eqb_spec (report d T x) o) as [->|D].
    + rewrite IH. reflexivity.
    + simpl. rewrite andb_false_r. reflexivity.
Qed.

Theorem private_for_readers steps next x y top t : (top <= N)%nat -> possible top t ->
  law N (fun d => is (same (run steps next [] d x) t)) * num (N - top)
  <= law N (fun d => is (same (run steps next [] d y) t)) * num (N - top + m * top).
Proof.
  intros Htop H.
  assert (E : forall z, law N (fun d => is (same (run steps next [] d z) t))
                        = if follows steps next [] t then path z t else 0).
  { intros z. destruct (follows steps next [] t) eqn:F.
    - apply law_ext; [lia|]. intros d. rewrite run_is_follows, F. reflexivity.
    - rewrite <- (law_zero N) by lia. apply law_ext; [lia|]. intros d. rewrite run_is_follows, F. reflexivity. }
  rewrite !E. destruct (follows steps next [] t).
  - apply private; assumption.
  - rewrite !Qcmult_0_l. apply Qcle_refl.
Qed.

End Privacy.

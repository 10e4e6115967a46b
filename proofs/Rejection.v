(* Rejected words: the law of a path in Path.v is what strings of words come to.

   `sample` is `iterate_draws` of src/relaxdp/sampling/keyed_path.py: it reads pairs of words, one after the other, and draws the
   next pair where one is rejected. Averaged over all strings of L pairs, it falls short of the law of Path.v by what
   strings that are too short leave open, and that is at most 2^bound (7/8)^L. *)

From Coq Require Import Arith Lia List Bool QArith Qcanon.
From Relaxdp Require Import Numbers Path.
Import ListNotations.
Open Scope Qc_scope.

Fixpoint power (a : Qc) (n : nat) : Qc := match n with O => 1 | S n => a * power a n end.

Lemma power_not_negative a n : 0 <= a -> 0 <= power a n.
Proof.
  intros A. induction n as [|n IH]; simpl; [apply Qclt_le_weak, one_positive | apply mult_not_negative; assumption].
Qed.

Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [apply Qcle_refl|].
  apply Qcplus_le_compat; [apply IH; intros i Hi; apply H; lia | apply H; lia].
Qed.

Lemma less_is_not_negative a b : a <= b -> 0 <= b - a.
Proof. intros H. replace (b - a) with (b + - a) by ring. apply (proj1 (Qcle_minus_iff a b)). exact H. Qed.

Lemma from_not_negative a b : 0 <= b - a -> a <= b.
Proof. intros H. apply by_difference with (b - a); [exact H | ring]. Qed.

Section Rejection.

Variables N m : nat.
Hypothesis some_values : (0 < m)%nat.
Hypothesis words_suffice : (m <= N)%nat.

Definition string := list (nat * nat).

Fixpoint sample (words : string) (bound : nat) {struct words} : option draws :=
  match bound, words with
  | O, _ => Some []
  | S _, [] => None
  | S _, (u, v) :: rest =>
      if accepted N m bound u v
      then option_map (cons (u mod bound, v mod m)%nat) (sample rest (u mod bound))
      else sample rest bound
  end.

Lemma sample_cons u v rest bound : (0 < bound)%nat ->
  sample ((u, v) :: rest) bound
  = if accepted N m bound u v
    then option_map (cons (u mod bound, v mod m)%nat) (sample rest (u mod bound))
    else sample rest bound.
Proof. intros H. destruct bound; [lia | reflexivity]. Qed.

(* The average over all strings of so many pairs of words. *)

Fixpoint strings (pairs : nat) (f : string -> Qc) : Qc :=
  match pairs with
  | O => f []
  | S pairs => sum N (fun u => sum N (fun v => strings pairs (fun rest => f ((u, v) :: rest)))) / (num N * num N)
  end.

Definition decided (k : draws -> Qc) (found : option draws) : Qc := match found with Some d => k d | None => 0 end.

Definition average (pairs bound : nat) (k : draws -> Qc) : Qc :=
  strings pairs (fun words => decided k (sample words bound)).

Lemma strings_ext pairs : forall f g, (forall s, f s = g s) -> strings pairs f = strings pairs g.
Proof.
  induction pairs as [|pairs IH]; intros f g H; simpl; [apply H|]. f_equal.
  apply sum_ext. intros u _. apply sum_ext. intros v _. apply IH. intros s. apply H.
Qed.

Lemma strings_const pairs c : strings pairs (fun _ => c) = c.
Proof.
  induction pairs as [|pairs IH]; simpl; [reflexivity|].
  rewrite (sum_ext N _ (fun _ => num N * c)).
  - rewrite sum_const. field. apply num_nonzero. lia.
  - intros u _. rewrite (sum_ext N _ (fun _ => c)); [apply sum_const | intros; apply IH].
Qed.

Lemma average_zero pairs k : average pairs 0 k = k [].
Proof.
  unfold average. rewrite (strings_ext pairs _ (fun _ => k [])); [apply strings_const|].
  intros s. destruct s; reflexivity.
Qed.

(* How many of all pairs of words are accepted. *)

Definition accepted_part (bound : nat) : Qc := words N m bound (fun _ _ => 1) / (num N * num N).

Lemma accepted_words bound : (0 < bound <= N)%nat ->
  words N m bound (fun _ _ => 1) = num (N / bound * bound * (N / m * m)).
Proof.
  intros H. rewrite (words_uniform N m some_values words_suffice bound (fun _ _ => 1) H).
  rewrite (sum_ext bound _ (fun _ => num m)); [|intros; rewrite sum_const; ring].
  rewrite sum_const, !num_mult. ring.
Qed.

Lemma at_least_half n : (0 < n <= N)%nat -> (N <= 2 * (N / n * n))%nat.
Proof.
  intros H. pose proof (Nat.div_mod_eq N n). pose proof (Nat.mod_upper_bound N n).
  assert (0 < N / n)%nat by (apply Nat.div_str_pos; lia). nia.
Qed.

(* A string's first pair is accepted, or it is as if it had not been there. *)

Lemma average_step pairs bound k : (0 < bound <= N)%nat ->
  average (S pairs) bound k
  = accepted_part bound * draw N m bound (fun R V => average pairs R (fun d => k ((R, V) :: d)))
    + (1 - accepted_part bound) * average pairs bound k.
Proof.
  intros H. assert (NN : num N <> 0) by (apply num_nonzero; lia).
  set (g := fun R V => average pairs R (fun d => k ((R, V) :: d))).
  set (c := average pairs bound k).
  assert (E : sum N (fun u => sum N (fun v => strings pairs (fun rest => decided k (sample ((u, v) :: rest) bound))))
              = words N m bound (fun u v => g (u mod bound)%nat (v mod m)%nat)
                + c * (num N * num N - words N m bound (fun _ _ => 1))).
  { assert (A : num N * num N = sum N (fun _ => sum N (fun _ => 1))).
    { rewrite (sum_ext N _ (fun _ => num N)); [rewrite sum_const; ring | intros; rewrite sum_const; ring]. }
    rewrite A. unfold words.
    replace (sum N (fun _ => sum N (fun _ => 1))
             - sum N (fun u => sum N (fun v => if accepted N m bound u v then 1 else 0)))
      with (sum N (fun u => sum N (fun v => if accepted N m bound u v then 0 else 1))).
    - rewrite <- sum_scale, <- sum_plus. apply sum_ext. intros u _.
      rewrite <- sum_scale, <- sum_plus. apply sum_ext. intros v _.
      rewrite (strings_ext pairs _ (fun rest => decided k
        (if accepted N m bound u v
         then option_map (cons (u mod bound, v mod m)%nat) (sample rest (u mod bound))
         else sample rest bound))) by (intros s; rewrite sample_cons by lia; reflexivity).
      destruct (accepted N m bound u v).
      + rewrite Qcmult_0_r, Qcplus_0_r. unfold g, average. apply strings_ext. intros s.
        destruct (sample s (u mod bound)); reflexivity.
      + rewrite Qcmult_1_r, Qcplus_0_l. reflexivity.
    - assert (S : forall a b s : Qc, a + b = s -> a = s - b) by (intros a b s <-; ring).
      apply S. rewrite <- sum_plus. apply sum_ext. intros u _. rewrite <- sum_plus. apply sum_ext. intros v _.
      destruct (accepted N m bound u v); ring. }
  change (average (S pairs) bound k) with
    (sum N (fun u => sum N (fun v => strings pairs (fun rest => decided k (sample ((u, v) :: rest) bound))))
     / (num N * num N)).
  rewrite E. unfold draw, accepted_part. fold g.
  assert (num (N / bound * bound * (N / m * m)) <> 0).
  { apply num_nonzero. pose proof (at_least_half bound H). assert (0 < m <= N)%nat as M by lia.
    pose proof (at_least_half m M). nia. }
  rewrite accepted_words by exact H. field. repeat split; assumption.
Qed.

(* Draws of what is larger are larger. *)

Lemma draw_le bound f g : (0 < bound <= N)%nat ->
  (forall R V, (R < bound)%nat -> (V < m)%nat -> f R V <= g R V) -> draw N m bound f <= draw N m bound g.
Proof.
  intros H L. rewrite !draw_uniform by (assumption || lia).
  unfold Qcdiv. apply Qcmult_le_compat_r.
  - apply sum_le. intros R HR. apply sum_le. intros V HV. apply L; assumption.
  - rewrite <- num_mult. apply inverse_not_negative. nia.
Qed.

Lemma draw_const bound c : (0 < bound <= N)%nat -> draw N m bound (fun _ _ => c) = c.
Proof.
  intros H. rewrite draw_uniform by (assumption || lia).
  rewrite (sum_ext bound _ (fun _ => num m * c)); [|intros; apply sum_const].
  rewrite sum_const. field. split; apply num_nonzero; lia.
Qed.

Lemma draw_minus bound f g : (0 < bound <= N)%nat ->
  draw N m bound f - draw N m bound g = draw N m bound (fun R V => f R V - g R V).
Proof.
  intros H. rewrite !draw_uniform by (assumption || lia).
  rewrite (sum_ext bound (fun R => sum m (fun V => f R V - g R V))
             (fun R => sum m (fun V => f R V) + - (1) * sum m (fun V => g R V))).
  - rewrite sum_plus, sum_scale. field. split; apply num_nonzero; lia.
  - intros R _. rewrite <- sum_scale, <- sum_plus. apply sum_ext. intros. ring.
Qed.

Definition chance (k : draws -> Qc) : Prop := forall d, 0 <= k d /\ k d <= 1.

Lemma law_between bound : forall k, (bound <= N)%nat -> chance k -> 0 <= law N m bound k /\ law N m bound k <= 1.
Proof.
  induction bound as [bound IH] using lt_wf_ind. intros k HN K.
  destruct bound as [|b]; [apply K|].
  rewrite law_step by (assumption || lia).
  rewrite <- (draw_const (S b) 0), <- (draw_const (S b) 1) by lia.
  split; apply draw_le; try lia; intros R V HR HV; apply IH; try lia; intros d; apply K.
Qed.

(* What is left open. *)

Definition seven_eighths : Qc := num 7 / num 8.

Definition open (pairs bound : nat) : Qc := power (num 2) bound * power seven_eighths pairs.

Lemma two_not_negative : 0 <= num 2. Proof. apply num_not_negative. Qed.

Lemma open_not_negative pairs bound : 0 <= open pairs bound.
Proof.
  apply mult_not_negative; apply power_not_negative; [apply num_not_negative|].
  apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; lia].
Qed.

Lemma power_two_le a : forall b, (a <= b)%nat -> power (num 2) a <= power (num 2) b.
Proof.
  intros b H. induction H as [|b H IH]; [apply Qcle_refl|]. simpl power.
  apply Qcle_trans with (power (num 2) b); [exact IH|].
  apply by_difference with (power (num 2) b); [apply power_not_negative, two_not_negative | simpl num; ring].
Qed.

Theorem strings_come_to_the_law pairs : forall bound k, (bound <= N)%nat -> chance k ->
  0 <= law N m bound k - average pairs bound k /\ law N m bound k - average pairs bound k <= open pairs bound.
Proof.
  induction pairs as [|pairs IH]; intros bound k HN K.
  - destruct bound as [|b].
    + rewrite average_zero. unfold law. simpl paths. replace (k [] - k []) with 0 by ring.
      split; [apply Qcle_refl | apply open_not_negative].
    + unfold average. simpl strings. unfold decided. simpl sample.
      replace (law N m (S b) k - 0) with (law N m (S b) k) by ring.
      destruct (law_between (S b) k HN K) as [A B]. split; [exact A|].
      apply Qcle_trans with 1; [exact B|]. unfold open.
      replace 1 with (power (num 2) 0) by reflexivity.
      replace (power (num 2) (S b) * power seven_eighths 0) with (power (num 2) (S b)) by (simpl power; ring).
      apply power_two_le. lia.
  - destruct bound as [|b].
    { rewrite average_zero. unfold law. simpl paths. replace (k [] - k []) with 0 by ring.
      split; [apply Qcle_refl | apply open_not_negative]. }
    assert (HB : (0 < S b <= N)%nat) by lia.
    rewrite average_step by exact HB.
    set (p := accepted_part (S b)). set (gap := law N m (S b) k - average pairs (S b) k).
    set (f := fun R V => law N m R (fun d => k ((R, V) :: d)) - average pairs R (fun d => k ((R, V) :: d))).
    assert (L : law N m (S b) k - (p * draw N m (S b) (fun R V => average pairs R (fun d => k ((R, V) :: d)))
                                   + (1 - p) * average pairs (S b) k)
                = p * draw N m (S b) f + (1 - p) * gap).
    { unfold gap, f. rewrite <- draw_minus by exact HB. rewrite <- law_step by (assumption || lia). ring. }
    rewrite L. clear L.
    assert (NN : num N <> 0) by (apply num_nonzero; lia).
    assert (P : p = num (N / S b * S b * (N / m * m)) * / num (N * N)).
    { unfold p, accepted_part. rewrite accepted_words by exact HB. rewrite (num_mult N N). reflexivity. }
    assert (Half : (N * N <= 4 * (N / S b * S b * (N / m * m)))%nat).
    { pose proof (at_least_half (S b) HB). assert (0 < m <= N)%nat as M by lia. pose proof (at_least_half m M). nia. }
    assert (Most : (N / S b * S b * (N / m * m) <= N * N)%nat).
    { apply Nat.mul_le_mono; rewrite Nat.mul_comm; apply Nat.mul_div_le; lia. }
    assert (P0 : 0 <= p).
    { rewrite P. apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; nia]. }
    assert (P1 : 0 <= 1 - p).
    { rewrite P. set (A := (N / S b * S b * (N / m * m))%nat) in *.
      replace (1 - num A * / num (N * N)) with (num (N * N - A) * / num (N * N))
        by (rewrite num_minus by exact Most; field; apply num_nonzero; nia).
      apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; nia]. }
    assert (P4 : 0 <= num 4 * p - 1).
    { rewrite P. set (A := (N / S b * S b * (N / m * m))%nat) in *.
      replace (num 4 * (num A * / num (N * N)) - 1) with (num (4 * A - N * N) * / num (N * N))
        by (rewrite num_minus by exact Half; rewrite (num_mult 4 A); field; apply num_nonzero; nia).
      apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; nia]. }
    destruct (IH (S b) k HN K) as [G0 G1]. fold gap in G0, G1.
    assert (F : 0 <= draw N m (S b) f /\ draw N m (S b) f <= open pairs b).
    { rewrite <- (draw_const (S b) 0), <- (draw_const (S b) (open pairs b)) by exact HB.
      assert (IHf : forall R V, (R < S b)%nat -> 0 <= f R V /\ f R V <= open pairs R).
      { intros R V HR. apply IH; [lia|]. intros d. apply K. }
      split; apply draw_le; try exact HB; intros R V HR HV; [apply IHf; exact HR|].
      apply Qcle_trans with (open pairs R); [apply IHf; exact HR|].
      unfold open. apply Qcmult_le_compat_r; [apply power_two_le; lia|].
      apply power_not_negative, mult_not_negative; [apply num_not_negative | apply inverse_not_negative; lia]. }
    destruct F as [F0 F1]. split.
    + apply plus_not_negative; apply mult_not_negative; assumption.
    + apply Qcle_trans with (p * open pairs b + (1 - p) * open pairs (S b)).
      * apply Qcplus_le_compat;
          [ rewrite (Qcmult_comm p), (Qcmult_comm p); apply Qcmult_le_compat_r; assumption
          | rewrite (Qcmult_comm (1 - p)), (Qcmult_comm (1 - p)); apply Qcmult_le_compat_r; assumption ].
      * apply by_difference with ((num 4 * p - 1) * / num 4 * open pairs b).
        { apply mult_not_negative; [|apply open_not_negative].
          apply mult_not_negative; [exact P4 | apply inverse_not_negative; lia]. }
        { unfold open, seven_eighths. simpl power.
          simpl num. field. repeat split; intros E; discriminate E. }
Qed.

End Rejection.

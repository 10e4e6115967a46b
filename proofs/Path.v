(* The path is a chain: machine-checked, for every number of values and every word size.

   The model is that of src/relaxdp/sampling/keyed_path.py. Words run over 0 .. N - 1 (N is 2^64 there, and any number here);
   there are m values. A pair of words is accepted or rejected (`accepted`); a draw is the law of an accepted pair; a
   path is a list of draws whose positions go down to 0 (`law`); a report is read from it at a threshold (`report`).
   Probabilities are fractions: counts of words, divided by the number of accepted ones. *)

From Coq Require Import Arith Lia List Bool QArith Qcanon.
From Relaxdp Require Import Numbers.
Import ListNotations.
Open Scope Qc_scope.

Section Path.

Variables N m : nat.
Hypothesis some_values : (0 < m)%nat.
Hypothesis words_suffice : (m <= N)%nat.

(* A word is accepted if it lies in a complete run of n words; both words must be. *)

Definition complete (n w : nat) : bool := (w <=? N - 1 - N mod n)%nat.

Definition accepted (n u v : nat) : bool := complete n u && complete m v.

(* All pairs of words that are accepted, each with a weight. *)

Definition words (n : nat) (f : nat -> nat -> Qc) : Qc :=
  sum N (fun u => sum N (fun v => if accepted n u v then f u v else 0)).

(* The law of the next draw below n: a rejected pair is drawn again, so it is the law of an accepted one. *)

Definition draw (n : nat) (f : nat -> nat -> Qc) : Qc :=
  words n (fun u v => f (u mod n)%nat (v mod m)%nat) / words n (fun _ _ => 1).

Lemma sum_complete n f : (0 < n <= N)%nat ->
  sum N (fun u => if complete n u then f (u mod n)%nat else 0) = num (N / n) * sum n f.
Proof.
  intros Hn. pose proof (Nat.div_mod_eq N n) as E. pose proof (Nat.mod_upper_bound N n) as U.
  replace (sum N) with (sum (N / n * n + N mod n)) by (f_equal; lia).
  rewrite sum_split.
  rewrite (sum_ext (N / n * n) _ (fun u => f (u mod n)%nat)).
  - rewrite sum_runs by lia.
    rewrite (sum_ext (N mod n) _ (fun _ => 0)); [rewrite sum_const; ring|].
    intros i Hi. unfold complete. destruct (Nat.leb_spec (N / n * n + i) (N - 1 - N mod n)); [lia | reflexivity].
  - intros i Hi. unfold complete. destruct (Nat.leb_spec i (N - 1 - N mod n)); [reflexivity | lia].
Qed.

Lemma words_uniform n f : (0 < n <= N)%nat ->
  words n (fun u v => f (u mod n)%nat (v mod m)%nat)
  = num (N / n) * num (N / m) * sum n (fun R => sum m (fun V => f R V)).
Proof.
  intros Hn. unfold words.
  rewrite (sum_ext N _ (fun u => if complete n u then num (N / m) * sum m (fun V => f (u mod n)%nat V) else 0)).
  - rewrite (sum_complete n (fun R => num (N / m) * sum m (fun V => f R V)) Hn), sum_scale. ring.
  - intros u Hu. unfold accepted. destruct (complete n u); simpl.
    + apply (sum_complete m (fun V => f (u mod n)%nat V)). lia.
    + rewrite sum_const. ring.
Qed.

(* A draw is uniform on 0 .. n - 1 times 0 .. m - 1, exactly, whatever the size of words is. *)

Theorem draw_uniform n f : (0 < n <= N)%nat ->
  draw n f = sum n (fun R => sum m (fun V => f R V)) / (num n * num m).
Proof.
  intros Hn. unfold draw. rewrite words_uniform by exact Hn.
  rewrite (words_uniform n (fun _ _ => 1) Hn).
  rewrite (sum_ext n (fun R => sum m (fun _ => 1)) (fun _ => num m)); [|intros; rewrite sum_const; ring].
  rewrite sum_const.
  assert (num n <> 0) by (apply num_nonzero; lia). assert (num m <> 0) by (apply num_nonzero; lia).
  assert (num (N / n) <> 0) by (apply num_nonzero, Nat.div_str_pos; lia).
  assert (num (N / m) <> 0) by (apply num_nonzero, Nat.div_str_pos; lia).
  field. repeat split; assumption.
Qed.

(* A path: draws, each below the one before, until a position is 0. `k` is what is computed from the draws. *)

Definition draws := list (nat * nat).

Fixpoint paths (fuel bound : nat) (k : draws -> Qc) : Qc :=
  match fuel, bound with
  | S fuel, S _ => draw bound (fun R V => paths fuel R (fun d => k ((R, V) :: d)))
  | _, _ => k []
  end.

Definition law (bound : nat) (k : draws -> Qc) : Qc := paths bound bound k.

(* The report at a threshold: the value of the last draw at or above it, or what was there before. *)

Fixpoint report (d : draws) (T before : nat) : nat :=
  match d with
  | [] => before
  | (R, V) :: rest => if (R <? T)%nat then before else report rest T V
  end.

(* A transcript: thresholds, each with the report that is seen there. *)

Definition transcript := list (nat * nat).

Definition shows (d : draws) (truth : nat) (t : transcript) : bool :=
  forallb (fun seen => report d (fst seen) truth =? snd seen)%nat t.

(* The probability that a path shows a transcript. It begins at N, with the truth. *)

Definition below (bound truth : nat) (t : transcript) : Qc := law bound (fun d => is (shows d truth t)).

Definition path (truth : nat) (t : transcript) : Qc := below N truth t.

(* The chain: a report is a blur of the one above it; thresholds do not grow. *)

Definition blur (c : Qc) (from to : nat) : Qc := c * is (to =? from)%nat + (1 - c) / num m.

Fixpoint chain (level from : nat) (t : transcript) : Qc :=
  match t with
  | [] => 1
  | (T, o) :: rest => blur (num T / num level) from o * chain T o rest
  end.

Fixpoint falling (level : nat) (t : transcript) : Prop :=
  match t with
  | [] => True
  | (T, o) :: rest => (0 < T <= level)%nat /\ (o < m)%nat /\ falling T rest
  end.

(* A step of a path. *)

Lemma draw_ext n f g : (0 < n <= N)%nat ->
  (forall R V, (R < n)%nat -> (V < m)%nat -> f R V = g R V) -> draw n f = draw n g.
Proof.
  intros Hn H. rewrite !draw_uniform by exact Hn. f_equal.
  apply sum_ext. intros R HR. apply sum_ext. intros V HV. apply H; assumption.
Qed.

Lemma paths_fuel fuel : forall more bound k, (bound <= fuel <= more)%nat -> (bound <= N)%nat ->
  paths fuel bound k = paths more bound k.
Proof.
  induction fuel as [|fuel IH]; intros more bound k H HN.
  - destruct bound; [|lia]. destruct more; reflexivity.
  - destruct more as [|more]; [lia|]. destruct bound as [|bound]; [reflexivity|]. simpl.
    apply draw_ext; [lia|]. intros R V HR HV. apply IH; lia.
Qed.

Lemma law_step bound k : (0 < bound <= N)%nat ->
  law bound k = draw bound (fun R V => law R (fun d => k ((R, V) :: d))).
Proof.
  intros H. unfold law. destruct bound as [|b]; [lia|]. simpl.
  apply draw_ext; [lia|]. intros R V HR HV. symmetry. apply paths_fuel; lia.
Qed.

Lemma law_ext bound : forall k k', (bound <= N)%nat -> (forall d, k d = k' d) -> law bound k = law bound k'.
Proof.
  induction bound as [bound IH] using lt_wf_ind. intros k k' HN H.
  destruct bound as [|b]; [apply H|].
  rewrite !law_step by lia. apply draw_ext; [lia|]. intros R V HR HV. apply IH; [lia | lia |]. intros d. apply H.
Qed.

(* What is certain has probability 1. *)

Lemma law_one bound : (bound <= N)%nat -> law bound (fun _ => 1) = 1.
Proof.
  induction bound as [bound IH] using lt_wf_ind. intros HN.
  destruct bound as [|b]; [reflexivity|].
  rewrite law_step, draw_uniform by lia.
  rewrite (sum_ext _ _ (fun _ => num m)).
  - rewrite sum_const. field. split; apply num_nonzero; lia.
  - intros R HR. rewrite (sum_ext m _ (fun _ => 1)); [rewrite sum_const; ring|]. intros V HV. apply IH; lia.
Qed.

Lemma law_zero bound : (bound <= N)%nat -> law bound (fun _ => 0) = 0.
Proof.
  induction bound as [bound IH] using lt_wf_ind. intros HN.
  destruct bound as [|b]; [reflexivity|].
  rewrite law_step, draw_uniform by lia.
  rewrite (sum_ext _ _ (fun _ => 0)).
  - rewrite sum_const. field. split; apply num_nonzero; lia.
  - intros R HR. rewrite (sum_ext m _ (fun _ => 0)); [rewrite sum_const; ring|]. intros V HV. apply IH; lia.
Qed.

(* Whatever a blur is made from, all of its outcomes are equally likely over a uniform start. *)

Lemma blur_from_uniform c o : (o < m)%nat -> sum m (fun V => blur c V o) = 1.
Proof.
  intros Ho. unfold blur. rewrite sum_plus, sum_const.
  rewrite (sum_ext m _ (fun V => is (V =? o)%nat * c)).
  - rewrite (sum_point m o (fun _ => c)) by exact Ho. field. apply num_nonzero. exact some_values.
  - intros V HV. rewrite Nat.eqb_sym. ring.
Qed.

(* A draw below a transcript's first threshold leaves that report as it is, and one at or above it forgets it. *)

Lemma shows_above R V d x t : falling R t -> shows ((R, V) :: d) x t = shows d V t.
Proof.
  revert V. assert (H : forall L, (L <= R)%nat -> falling L t -> forall V, shows ((R, V) :: d) x t = shows d V t).
  - induction t as [|[T o] t IH]; intros L HL F V; [reflexivity|].
    destruct F as [HT [Ho F]]. simpl.
    destruct (Nat.ltb_spec R T); [lia|]. f_equal. apply (IH T); [lia | exact F].
  - intros V F. apply (H R); [lia | exact F].
Qed.

Theorem below_is_chain size : forall bound t x, (bound + length t <= size)%nat -> (bound <= N)%nat -> falling bound t ->
  below bound x t = chain bound x t.
Proof.
  induction size as [|size IH]; intros bound t x Hsize HN F.
  { destruct bound; [|lia]. destruct t; [reflexivity | simpl in Hsize; lia]. }
  destruct t as [|[T o] t]; [apply law_one; exact HN|].
  pose proof F as F'. destruct F' as [HT [Ho Ft]]. simpl in Hsize. simpl chain.
  unfold below at 1. rewrite law_step, draw_uniform by lia.
  (* Positions below T, and the others. *)
  replace bound with (T + (bound - T))%nat at 1 by lia. rewrite sum_split.
  assert (LOW : sum T (fun R => sum m (fun V => law R (fun d => is (shows ((R, V) :: d) x ((T, o) :: t)))))
                = is (o =? x)%nat * (num T * num m * chain T x t)).
  { rewrite <- (IH T t x) by (try lia; exact Ft).
    unfold below. rewrite (law_step T), draw_uniform by lia.
    replace (num T * num m * _) with (sum T (fun R => sum m (fun V => law R (fun d => is (shows ((R, V) :: d) x t)))))
      by (field; split; apply num_nonzero; lia).
    rewrite <- sum_scale. apply sum_ext. intros R HR. rewrite <- sum_scale. apply sum_ext. intros V HV.
    destruct (Nat.eqb_spec o x) as [E|E]; simpl is.
    - rewrite Qcmult_1_l. apply law_ext; [lia|]. intros d. simpl shows.
      destruct (Nat.ltb_spec R T); [|lia]. subst o. rewrite Nat.eqb_refl. reflexivity.
    - rewrite Qcmult_0_l. rewrite <- (law_zero R) by lia. apply law_ext; [lia|]. intros d. simpl shows.
      destruct (Nat.ltb_spec R T); [|lia]. replace (x =? o)%nat with false by (symmetry; apply Nat.eqb_neq; lia).
      reflexivity. }
  assert (HIGH : sum (bound - T) (fun i => sum m (fun V =>
                   law (T + i) (fun d => is (shows ((T + i, V)%nat :: d) x ((T, o) :: t)))))
                 = num (bound - T) * chain T o t).
  { rewrite <- sum_const. apply sum_ext. intros i Hi.
    rewrite (sum_ext m _ (fun V => blur (num T / num (T + i)) V o * chain T o t)).
    - rewrite (sum_ext m _ (fun V => chain T o t * blur (num T / num (T + i)) V o)) by (intros; ring).
      rewrite sum_scale, blur_from_uniform by exact Ho. ring.
    - intros V HV.
      assert (FF : falling (T + i) ((T, o) :: t)) by (simpl; repeat split; try lia; exact Ft).
      rewrite (law_ext (T + i) _ (fun d => is (shows d V ((T, o) :: t)))).
      + change (below (T + i) V ((T, o) :: t) = chain (T + i) V ((T, o) :: t)). apply IH; simpl; try lia. exact FF.
      + lia.
      + intros d. f_equal. apply shows_above. exact FF. }
  rewrite LOW, HIGH. unfold blur.
  assert (C : is (o =? x)%nat * chain T x t = is (o =? x)%nat * chain T o t).
  { destruct (Nat.eqb_spec o x) as [->|E]; [reflexivity | simpl; ring]. }
  replace (is (o =? x)%nat * (num T * num m * chain T x t))
    with (num T * num m * (is (o =? x)%nat * chain T x t)) by ring.
  rewrite C. replace (num (bound - T)) with (num bound - num T)
    by (replace bound with (T + (bound - T))%nat at 1 by lia; rewrite num_plus; ring).
  field. split; apply num_nonzero; lia.
Qed.

(* The theorem. *)

Theorem path_is_chain x t : falling N t -> path x t = chain N x t.
Proof. intros F. apply (below_is_chain (N + length t)); [lia | lia | exact F]. Qed.

End Path.

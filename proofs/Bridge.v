(* The bridge and Algorithm 1, on the chain of Path.v.

   The law is that of src/relaxdp/theory/randomized_response.py: `mixture` is its `BridgeMixture.probability`, with retentions divided as
   `compute_bridge_mixture` divides them. *)

From Coq Require Import Arith Lia List Bool QArith Qcanon Permutation.
From Relaxdp Require Import Numbers Path Privacy.
Import ListNotations.
Open Scope Qc_scope.

Section Bridge.

Variables N m : nat.
Hypothesis some_values : (0 < m)%nat.
Hypothesis words_suffice : (m <= N)%nat.

(* A report between two others: `above` is middle / upper, `below` is lower / middle. *)

Definition both (above below : Qc) (agree : bool) : Qc := if agree then num m * above * below else 0.

Definition total (above below : Qc) (agree : bool) : Qc :=
  both above below agree + above * (1 - below) + below * (1 - above) + (1 - above) * (1 - below).

Definition mixture (above below : Qc) (lower upper v : nat) : Qc :=
  let agree := (lower =? upper)%nat in
  let whole := total above below agree in
  let redraw := (1 - above) * (1 - below) / whole in
  let to_upper := if agree then (both above below agree + above * (1 - below) + below * (1 - above)) / whole
                  else above * (1 - below) / whole in
  let to_lower := if agree then 0 else below * (1 - above) / whole in
  redraw / num m + is (v =? upper)%nat * to_upper + is (v =? lower)%nat * to_lower.

(* Bayes: to blur twice is to blur once, and then to draw the middle report from the mixture. *)

Lemma blur_is_total a b lower upper : blur m (a * b) upper lower = total a b (lower =? upper)%nat / num m.
Proof.
  assert (M : num m <> 0) by (apply num_nonzero; exact some_values).
  unfold blur, total, both. destruct (lower =? upper)%nat; simpl is; field; exact M.
Qed.

Lemma bayes a b lower upper v : total a b (lower =? upper)%nat <> 0 ->
  blur m a upper v * blur m b v lower = blur m (a * b) upper lower * mixture a b lower upper v.
Proof.
  intros T. assert (M : num m <> 0) by (apply num_nonzero; exact some_values).
  rewrite blur_is_total. unfold mixture. cbv zeta.
  set (whole := total a b (lower =? upper)%nat) in *. clearbody whole. unfold blur, both.
  rewrite (Nat.eqb_sym lower v).
  destruct (Nat.eqb_spec lower upper) as [->|D].
  - destruct (v =? upper)%nat; simpl is; field; split; assumption.
  - destruct (Nat.eqb_spec v upper) as [->|E].
    + replace (upper =? lower)%nat with false by (symmetry; apply Nat.eqb_neq; lia).
      simpl is. field. split; assumption.
    + destruct (v =? lower)%nat; simpl is; field; split; assumption.
Qed.

(* There is something to draw, unless two different reports stand at one level. *)

Lemma total_nonzero T U agree : (T <= U)%nat -> (0 < U)%nat -> (T < N)%nat -> (U <= N)%nat ->
  total (num U / num N) (num T / num U) agree <> 0.
Proof.
  intros H HU HT HN E.
  assert (A : num N <> 0) by (apply num_nonzero; lia). assert (B : num U <> 0) by (apply num_nonzero; lia).
  assert (P : num (N - T + (if agree then m * T else 0)) = 0).
  { replace (num (N - T + (if agree then m * T else 0)))
      with (num N * total (num U / num N) (num T / num U) agree); [rewrite E; ring|].
    unfold total, both. rewrite num_plus, num_minus by lia.
    destruct agree; [rewrite num_mult|]; simpl num; field; split; assumption. }
  apply (num_nonzero (N - T + (if agree then m * T else 0))); [lia | exact P].
Qed.

(* A chain may be cut anywhere. *)

Fixpoint level_after (level : nat) (t : transcript) : nat :=
  match t with [] => level | (T, _) :: rest => level_after T rest end.

Fixpoint seen_after (from : nat) (t : transcript) : nat :=
  match t with [] => from | (_, o) :: rest => seen_after o rest end.

Lemma chain_cut t rest : forall level from,
  chain m level from (t ++ rest) = chain m level from t * chain m (level_after level t) (seen_after from t) rest.
Proof. induction t as [|[T o] t IH]; intros level from; simpl; [ring | rewrite IH; ring]. Qed.

(* A report that is drawn between two neighbours of a chain leaves it a chain, with one level more.
   (`above` and `below` are those of the three thresholds.) *)

Theorem bridge_keeps_the_chain x above upper v lower U M L below :
  (0 < L)%nat -> (L <= M <= U)%nat -> total (num M / num U) (num L / num M) (lower =? upper)%nat <> 0 ->
  chain m N x (above ++ (U, upper) :: (L, lower) :: below)
    * mixture (num M / num U) (num L / num M) lower upper v
  = chain m N x (above ++ (U, upper) :: (M, v) :: (L, lower) :: below).
Proof.
  intros HL H T. rewrite !chain_cut. simpl.
  replace (num L / num U) with (num M / num U * (num L / num M)) by (field; split; apply num_nonzero; lia).
  rewrite (Qcmult_assoc (blur m (num M / num U) upper v)). rewrite bayes by exact T. ring.
Qed.

(* A blur of the lowest report is the same without a lower neighbour, by the definition of the chain. *)

Theorem blur_keeps_the_chain x above upper v U M :
  chain m N x (above ++ [(U, upper)]) * blur m (num M / num U) upper v
  = chain m N x (above ++ [(U, upper); (M, v)]).
Proof. rewrite !chain_cut. simpl. ring. Qed.

(* Algorithm 1: each report is drawn from the truth (a report with retention 1) and the last report. *)

Definition step (x T last U v : nat) : Qc := mixture (num U / num N) (num T / num U) last x v.

Fixpoint steps (x T last : nat) (t : transcript) : Qc :=
  match t with
  | [] => 1
  | (U, v) :: rest => step x T last U v * steps x U v rest
  end.

Fixpoint rising (level : nat) (t : transcript) : Prop :=
  match t with
  | [] => True
  | (U, v) :: rest => (level <= U < N)%nat /\ (v < m)%nat /\ rising U rest
  end.

Lemma steps_are_a_chain x t : forall T last, (0 < T < N)%nat -> rising T t ->
  blur m (num T / num N) x last * steps x T last t = chain m N x (rev ((T, last) :: t)).
Proof.
  induction t as [|[U v] t IH]; intros T last HT R; [simpl; ring|].
  destruct R as [HU [Hv R]]. simpl steps. simpl rev.
  replace (blur m (num T / num N) x last * (step x T last U v * steps x U v t))
    with (blur m (num T / num N) x last * step x T last U v * steps x U v t) by ring.
  replace (num T / num N) with (num U / num N * (num T / num U)) by (field; split; apply num_nonzero; lia).
  unfold step. rewrite <- bayes by (apply total_nonzero; lia).
  replace (blur m (num U / num N) x v * blur m (num T / num U) v last * steps x U v t)
    with (blur m (num U / num N) x v * steps x U v t * blur m (num T / num U) v last) by ring.
  rewrite IH by (try lia; exact R). simpl rev.
  rewrite <- app_assoc. simpl app. rewrite blur_keeps_the_chain. reflexivity.
Qed.

(* The first step is from noise: a threshold of 0, whatever the noise showed. *)

Lemma first_step x noise U v : (0 < U <= N)%nat -> step x 0 noise U v = blur m (num U / num N) x v.
Proof.
  intros H. assert (num N <> 0) by (apply num_nonzero; lia). assert (num U <> 0) by (apply num_nonzero; lia).
  assert (num m <> 0) by (apply num_nonzero; exact some_values).
  assert (E : forall agree, total (num U / num N) (num 0 / num U) agree = 1).
  { intros agree. unfold total, both. simpl num. destruct agree; field; split; assumption. }
  unfold step, mixture. cbv zeta. rewrite E. unfold both, blur. simpl num.
  assert (1 <> 0) by (intros F; discriminate F).
  destruct (noise =? x)%nat; destruct (v =? x)%nat; destruct (v =? noise)%nat; simpl is; field; repeat split; assumption.
Qed.

(* A transcript whose thresholds do not fall, read from its end, is one whose thresholds do not grow. *)

Lemma falling_rev t : forall T o rest, (0 < T < N)%nat -> (o < m)%nat -> rising T t -> falling m T rest ->
  falling m N (rev t ++ (T, o) :: rest).
Proof.
  induction t as [|[U v] t IH]; intros T o rest HT Ho R F; simpl.
  - repeat split; try lia. exact F.
  - destruct R as [HU [Hv R]]. rewrite <- app_assoc. apply IH; try lia; [exact R|].
    simpl. repeat split; try lia. exact F.
Qed.

(* So Algorithm 1 and the path have one law, at any number of levels. *)

Theorem algorithm_1_is_path x noise T o t : (0 < T < N)%nat -> (o < m)%nat -> rising T t ->
  steps x 0 noise ((T, o) :: t) = path N m x ((T, o) :: t).
Proof.
  intros HT Ho R. simpl steps. rewrite first_step by lia. rewrite steps_are_a_chain by (try lia; exact R).
  rewrite (any_order N m some_values words_suffice x ((T, o) :: t) (rev ((T, o) :: t))).
  - symmetry. apply path_is_chain; [exact some_values | exact words_suffice |].
    apply (falling_rev t T o []); try lia; [exact R | exact I].
  - apply Permutation_rev.
Qed.

End Bridge.

(* Encodings: a truth becomes symbols, at random and once; each symbol is read from a path of its own.

   Symbols are kept, so that the law of a transcript is an average over them of the laws of Path.v. *)

From Coq Require Import Arith Lia List Bool QArith Qcanon Permutation.
From Relaxdp Require Import Numbers Path Privacy Rejection.
Import ListNotations.
Open Scope Qc_scope.

Section Encodings.

Variables N m : nat.
Hypothesis some_values : (0 < m)%nat.
Hypothesis words_suffice : (m <= N)%nat.

(* One symbol. *)

Definition weights (w : nat -> Qc) : Prop := (forall s, (s < m)%nat -> 0 <= w s) /\ sum m w = 1.

Definition kept (w : nat -> Qc) (t : transcript) : Qc := sum m (fun s => w s * path N m s t).

(* The part of a transcript's law that does not know the truth comes out of the average. *)

Lemma kept_newest w T o t : weights w -> falling m N ((T, o) :: t) ->
  kept w ((T, o) :: t) = (num T / num N * w o + (1 - num T / num N) / num m) * chain m T o t.
Proof.
  intros [_ W] F. unfold kept.
  assert (M : num m <> 0) by (apply num_nonzero; exact some_values).
  assert (NN : num N <> 0) by (apply num_nonzero; lia).
  pose proof F as F'. destruct F' as [HT [Ho Ft]].
  rewrite (sum_ext m _ (fun s => chain m T o t * (is (s =? o)%nat * (num T / num N * w s))
                                 + (1 - num T / num N) / num m * chain m T o t * w s)).
  - rewrite sum_plus, !sum_scale, W, (sum_point m o (fun s => num T / num N * w s)) by exact Ho.
    ring.
  - intros s Hs. rewrite path_is_chain by assumption. simpl chain. unfold blur.
    rewrite (Nat.eqb_sym o s). ring.
Qed.

(* If no symbol has more than q of any truth's weight, a transcript of levels up to `top` has odds of at most
   1 + m q r / (1 - r), r = top / N. With q = 1 these are all encodings of one symbol: categorical, numeric, missing,
   and local hashing given the seed. *)

Theorem kept_private w w' q top t : weights w -> weights w' -> 0 <= q -> (forall s, (s < m)%nat -> w s <= q) ->
  (top <= N)%nat -> possible m top t ->
  kept w t * num (N - top) <= kept w' t * (num (N - top) + num m * q * num top).
Proof.
  intros W W' Q Wq Htop H.
  assert (M : num m <> 0) by (apply num_nonzero; exact some_values).
  assert (NN : num N <> 0) by (apply num_nonzero; lia).
  destruct (in_order N m some_values words_suffice top t H) as [t' [P F]].
  assert (S : forall v, kept v t = kept v t').
  { intros v. apply sum_ext. intros s _. f_equal. apply any_order; assumption. }
  rewrite !S. destruct t' as [|[T o] t'].
  - assert (E : forall v, weights v -> kept v [] = 1).
    { intros v [_ V]. rewrite <- V. apply sum_ext. intros s _. rewrite path_is_chain by (try assumption; exact I).
      simpl. ring. }
    rewrite !E by assumption. apply by_difference with (num m * q * num top); [|ring].
    apply mult_not_negative; [apply mult_not_negative; [apply num_not_negative | exact Q] | apply num_not_negative].
  - assert (FN : falling m N ((T, o) :: t')) by (apply (falling_weaker N m some_values words_suffice top); assumption).
    rewrite !kept_newest by assumption. destruct F as [HT [Ho F]].
    set (c := num T / num N). set (K := chain m T o t').
    assert (K0 : 0 <= K) by (apply (chain_not_negative N); try assumption; lia).
    assert (C : 0 <= c) by (apply mult_not_negative; [apply num_not_negative | apply inverse_not_negative; lia]).
    replace ((c * w o + (1 - c) / num m) * K * num (N - top))
      with ((c * w o + (1 - c) / num m) * num (N - top) * K) by ring.
    replace ((c * w' o + (1 - c) / num m) * K * (num (N - top) + num m * q * num top))
      with ((c * w' o + (1 - c) / num m) * (num (N - top) + num m * q * num top) * K) by ring.
    apply Qcmult_le_compat_r; [|exact K0].
    apply by_difference with
      (c * w' o * (num (N - top) + num m * q * num top) + c * (q - w o) * num (N - top) + q * num (top - T)).
    + destruct W' as [W'0 _]. apply plus_not_negative; [apply plus_not_negative|].
      * apply mult_not_negative; [apply mult_not_negative; [exact C | apply W'0; exact Ho]|].
        apply plus_not_negative; [apply num_not_negative|].
        apply mult_not_negative; [apply mult_not_negative; [apply num_not_negative | exact Q] | apply num_not_negative].
      * apply mult_not_negative; [|apply num_not_negative].
        apply mult_not_negative; [exact C | apply less_is_not_negative, Wq; exact Ho].
      * apply mult_not_negative; [exact Q | apply num_not_negative].
    + unfold c. rewrite !num_minus by lia. field. split; assumption.
Qed.

(* The wave: a number is rounded to bins with weights rho and spread evenly over `window` places from its bin on. No
   place has more than 1 / window of it. *)

Definition place (bins window : nat) (rho : nat -> Qc) (s : nat) : Qc :=
  sum bins (fun b => rho b * (is ((b <=? s) && (s <? b + window))%nat / num window)).

Lemma count_window b window : forall n, (b + window <= n)%nat ->
  sum n (fun s => is ((b <=? s) && (s <? b + window))%nat) = num window.
Proof.
  intros n H. replace n with (b + (window + (n - b - window)))%nat by lia.
  rewrite sum_split, sum_split.
  rewrite (sum_ext b _ (fun _ => 0)), (sum_ext window _ (fun _ => 1)), (sum_ext (n - b - window) _ (fun _ => 0)).
  - rewrite !sum_const. ring.
  - intros i Hi. destruct (Nat.ltb_spec (b + (window + i)) (b + window)); [lia|]. rewrite andb_false_r. reflexivity.
  - intros i Hi. destruct (Nat.leb_spec b (b + i)); [|lia]. destruct (Nat.ltb_spec (b + i) (b + window)); [|lia].
    reflexivity.
  - intros i Hi. destruct (Nat.leb_spec b i); [lia | reflexivity].
Qed.

Lemma sum_swap n k f : sum n (fun i => sum k (fun j => f i j)) = sum k (fun j => sum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl; [rewrite sum_const; ring|]. rewrite IH, <- sum_plus. reflexivity.
Qed.

Lemma place_weights bins window rho : (0 < window)%nat -> m = (bins + window - 1)%nat ->
  (forall b, (b < bins)%nat -> 0 <= rho b) -> sum bins rho = 1 ->
  weights (place bins window rho) /\ (forall s, (s < m)%nat -> place bins window rho s <= / num window).
Proof.
  intros Hw Hm R0 R1. assert (W : num window <> 0) by (apply num_nonzero; exact Hw).
  assert (I0 : forall b s, 0 <= is ((b <=? s) && (s <? b + window))%nat / num window).
  { intros b s. apply mult_not_negative; [apply is_not_negative | apply inverse_not_negative; exact Hw]. }
  split; [split|].
  - intros s _. unfold place. replace 0 with (sum bins (fun _ => 0)) by (rewrite sum_const; ring).
    apply sum_le. intros b Hb. apply mult_not_negative; [apply R0; exact Hb | apply I0].
  - unfold place. rewrite sum_swap, <- R1. apply sum_ext. intros b Hb.
    rewrite sum_scale.
    rewrite (sum_ext m _ (fun s => / num window * is ((b <=? s) && (s <? b + window))%nat))
      by (intros; unfold Qcdiv; ring).
    rewrite sum_scale, count_window by lia. field. exact W.
  - intros s _. unfold place. replace (/ num window) with (sum bins (fun b => rho b * / num window)).
    + apply sum_le. intros b Hb. apply by_difference with
        (rho b * ((1 - is ((b <=? s) && (s <? b + window))%nat) / num window)).
      * apply mult_not_negative; [apply R0; exact Hb|].
        apply mult_not_negative; [|apply inverse_not_negative; exact Hw].
        destruct ((b <=? s) && (s <? b + window))%nat; simpl; apply less_is_not_negative; [apply Qcle_refl|].
        apply Qclt_le_weak, one_positive.
      * field. exact W.
    + rewrite (sum_ext bins _ (fun b => / num window * rho b)) by (intros; ring). rewrite sum_scale, R1. ring.
Qed.

Theorem wave_private bins window rho rho' top t : (0 < window)%nat -> m = (bins + window - 1)%nat ->
  (forall b, (b < bins)%nat -> 0 <= rho b) -> sum bins rho = 1 ->
  (forall b, (b < bins)%nat -> 0 <= rho' b) -> sum bins rho' = 1 -> (top <= N)%nat -> possible m top t ->
  kept (place bins window rho) t * num (N - top)
  <= kept (place bins window rho') t * (num (N - top) + num m * / num window * num top).
Proof.
  intros Hw Hm R0 R1 R0' R1' Htop H.
  destruct (place_weights bins window rho Hw Hm R0 R1) as [A B].
  destruct (place_weights bins window rho' Hw Hm R0' R1') as [A' _].
  apply kept_private; try assumption. apply inverse_not_negative. exact Hw.
Qed.

(* Several symbols, each on a path of its own: a row of symbols shows a row of transcripts. *)

Fixpoint row (symbols : list nat) (seen : list transcript) : Qc :=
  match symbols, seen with
  | s :: symbols, t :: seen => path N m s t * row symbols seen
  | _, _ => 1
  end.

Fixpoint differing (one two : list nat) : nat :=
  match one, two with
  | s :: one, s' :: two => ((if s =? s' then 0 else 1) + differing one two)%nat
  | _, _ => O
  end.

Lemma path_not_negative s t : possible m N t -> 0 <= path N m s t.
Proof.
  intros H. destruct (in_order N m some_values words_suffice N t H) as [t' [P F]]. rewrite (any_order N m some_values words_suffice s t t' P).
  rewrite path_is_chain by assumption. apply (chain_not_negative N); try assumption. lia.
Qed.

Lemma mult_le a b c d : 0 <= b -> 0 <= c -> a <= b -> c <= d -> a * c <= b * d.
Proof.
  intros B C AB CD. apply Qcle_trans with (b * c); [apply Qcmult_le_compat_r; assumption|].
  rewrite (Qcmult_comm b c), (Qcmult_comm b d). apply Qcmult_le_compat_r; assumption.
Qed.

(* Each symbol in which two truths differ costs the odds once: two of symmetric bits, 2 h of a Bloom filter. *)

Theorem rows_private top seen : (top <= N)%nat -> (forall t, In t seen -> possible m top t) ->
  forall one two, length one = length two ->
  row one seen * power (num (N - top)) (differing one two)
  <= row two seen * power (num (N - top + m * top)) (differing one two).
Proof.
  intros Htop. induction seen as [|t seen IH]; intros H [|s one] [|s' two] L; try discriminate L;
    try (simpl; rewrite !Qcmult_1_l; apply Qcle_refl).
  - simpl row. rewrite !Qcmult_1_l.
    generalize (differing (s :: one) (s' :: two)). intros d. induction d as [|d IHd]; simpl power; [apply Qcle_refl|].
    apply mult_le; try exact IHd; try apply num_not_negative; [apply power_not_negative, num_not_negative|].
    rewrite num_plus. apply by_difference with (num (m * top)); [apply num_not_negative | ring].
  - assert (PT : possible m N t).
    { intros T o I. destruct (H t (or_introl eq_refl) T o I). lia. }
    assert (NR : forall symbols, 0 <= row symbols seen).
    { assert (PS : forall t, In t seen -> possible m N t).
      { intros t' I T o I'. destruct (H t' (or_intror I) T o I'). lia. }
      clear -PS some_values words_suffice. induction seen as [|t' seen IHs]; intros [|s symbols];
        simpl row; try (apply Qclt_le_weak, one_positive).
      apply mult_not_negative; [apply path_not_negative, PS; left; reflexivity|].
      apply IHs. intros t I. apply PS. right. exact I. }
    simpl row. simpl differing. injection L as L.
    assert (R := IH (fun t' I => H t' (or_intror I)) one two L).
    set (d := differing one two) in *.
    assert (PA : 0 <= power (num (N - top)) d) by (apply power_not_negative, num_not_negative).
    destruct (Nat.eqb_spec s s') as [->|D]; simpl plus; simpl power.
    + replace (path N m s' t * row one seen * power (num (N - top)) d)
        with (row one seen * power (num (N - top)) d * path N m s' t) by ring.
      replace (path N m s' t * row two seen * power (num (N - top + m * top)) d)
        with (row two seen * power (num (N - top + m * top)) d * path N m s' t) by ring.
      apply Qcmult_le_compat_r; [exact R | apply path_not_negative; exact PT].
    + replace (path N m s t * row one seen * (num (N - top) * power (num (N - top)) d))
        with (path N m s t * num (N - top) * (row one seen * power (num (N - top)) d)) by ring.
      replace (path N m s' t * row two seen * (num (N - top + m * top) * power (num (N - top + m * top)) d))
        with (path N m s' t * num (N - top + m * top) * (row two seen * power (num (N - top + m * top)) d)) by ring.
      apply mult_le; [| |apply private; try assumption; apply H; left; reflexivity|exact R].
      * apply mult_not_negative; [apply path_not_negative; exact PT | apply num_not_negative].
      * apply mult_not_negative; [apply NR | exact PA].
Qed.

End Encodings.

(* Optimised unary: the bit of the truth is kept as the AND of 1 and a fair coin. Two truths differ in two bits, with
   transcripts t and t' at the same levels; all other bits cancel. *)

Section Optimised.

Variable N : nat.
Hypothesis words_suffice : (2 <= N)%nat.

Definition coin (t : transcript) : Qc := (path N 2 0 t + path N 2 1 t) / num 2.

Lemma coin_forgets T o t : falling 2 N ((T, o) :: t) -> coin ((T, o) :: t) = / num 2 * chain 2 T o t.
Proof.
  intros F. unfold coin. rewrite !path_is_chain by (try exact F; lia). simpl chain.
  assert (B : blur 2 (num T / num N) 0 o + blur 2 (num T / num N) 1 o = 1).
  { destruct F as [_ [Ho _]]. rewrite <- (blur_from_uniform 2 ltac:(lia) (num T / num N) o Ho). simpl sum. ring. }
  replace (blur 2 (num T / num N) 0 o * chain 2 T o t + blur 2 (num T / num N) 1 o * chain 2 T o t)
    with ((blur 2 (num T / num N) 0 o + blur 2 (num T / num N) 1 o) * chain 2 T o t) by ring.
  rewrite B. field. apply num_nonzero. lia.
Qed.

Theorem optimised_private T o t o' t' : (T <= N)%nat -> falling 2 N ((T, o) :: t) -> falling 2 N ((T, o') :: t') ->
  coin ((T, o) :: t) * path N 2 0 ((T, o') :: t') * num (N - T)
  <= path N 2 0 ((T, o) :: t) * coin ((T, o') :: t') * num (N - T + 2 * T).
Proof.
  intros HT F F'. rewrite !coin_forgets by assumption. rewrite !path_is_chain by (try assumption; lia). simpl chain.
  set (K := chain 2 T o t). set (K' := chain 2 T o' t').
  assert (P : (0 < T)%nat) by (destruct F; lia).
  assert (K0 : 0 <= K) by (destruct F as [_ [_ F]]; apply (chain_not_negative N); try assumption; lia).
  assert (K0' : 0 <= K') by (destruct F' as [_ [_ F']]; apply (chain_not_negative N); try assumption; lia).
  replace (/ num 2 * K * (blur 2 (num T / num N) 0 o' * K') * num (N - T))
    with (blur 2 (num T / num N) 0 o' * num (N - T) * (/ num 2 * K * K')) by ring.
  replace (blur 2 (num T / num N) 0 o * K * (/ num 2 * K') * num (N - T + 2 * T))
    with (blur 2 (num T / num N) 0 o * num (N - T + 2 * T) * (/ num 2 * K * K')) by ring.
  apply Qcmult_le_compat_r.
  - (* A bit that is seen has at most the odds of one that is not, whichever bits they are. *)
    assert (E : blur 2 (num T / num N) 0 o' = blur 2 (num T / num N) (if (o' =? 0)%nat then o else S o) o).
    { unfold blur. destruct (o' =? 0)%nat; [rewrite Nat.eqb_refl; reflexivity|].
      replace (o =? S o)%nat with false by (symmetry; apply Nat.eqb_neq; lia). reflexivity. }
    rewrite E. apply compute_blur_retention; lia.
  - repeat apply mult_not_negative; try assumption. apply inverse_not_negative. lia.
Qed.

End Optimised.

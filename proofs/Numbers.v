(* Numbers and finite sums, as fractions: what counting words needs. *)

From Coq Require Import Arith Lia QArith Qcanon.
Open Scope Qc_scope.

Fixpoint num (n : nat) : Qc := match n with O => 0 | S k => num k + 1 end.

Fixpoint sum (n : nat) (f : nat -> Qc) : Qc := match n with O => 0 | S k => sum k f + f k end.

Definition is (b : bool) : Qc := if b then 1 else 0.

Lemma num_plus a b : num (a + b) = num a + num b.
Proof. induction a as [|a IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma num_mult a b : num (a * b) = num a * num b.
Proof. induction a as [|a IH]; simpl; [ring | rewrite num_plus, IH; ring]. Qed.

Lemma one_positive : 0 < 1.
Proof. reflexivity. Qed.

Lemma num_not_negative n : 0 <= num n.
Proof.
  induction n as [|n IH]; simpl; [apply Qcle_refl|].
  replace 0 with (0 + 0) by ring. apply Qcplus_le_compat; [exact IH | apply Qclt_le_weak, one_positive].
Qed.

Lemma num_positive n : (0 < n)%nat -> 0 < num n.
Proof.
  destruct n as [|n]; [lia|]. intros _. simpl.
  apply Qclt_le_trans with (0 + 1); [reflexivity|].
  apply Qcplus_le_compat; [apply num_not_negative | apply Qcle_refl].
Qed.

Lemma num_nonzero n : (0 < n)%nat -> num n <> 0.
Proof. intros H E. apply num_positive in H. rewrite E in H. exact (Qclt_not_le _ _ H (Qcle_refl 0)). Qed.

Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite (H n) by lia. rewrite IH; [reflexivity|]. intros i Hi. apply H. lia.
Qed.

Lemma sum_scale n c f : sum n (fun i => c * f i) = c * sum n f.
Proof. induction n as [|n IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma sum_plus n f g : sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n as [|n IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma sum_const n c : sum n (fun _ => c) = num n * c.
Proof. induction n as [|n IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma sum_split a b f : sum (a + b) f = sum a f + sum b (fun i => f (a + i)%nat).
Proof.
  induction b as [|b IH]; simpl.
  - rewrite Nat.add_0_r. ring.
  - rewrite Nat.add_succ_r. simpl. rewrite IH. ring.
Qed.

Lemma sum_point n k f : (k < n)%nat -> sum n (fun i => is (i =? k)%nat * f i) = f k.
Proof.
  induction n as [|n IH]; intros H; [lia|]. simpl.
  destruct (Nat.eq_dec n k) as [->|D].
  - rewrite (sum_ext k _ (fun _ => 0)).
    + rewrite sum_const, Nat.eqb_refl. simpl. ring.
    + intros i Hi. replace (i =? k)%nat with false by (symmetry; apply Nat.eqb_neq; lia). simpl. ring.
  - rewrite IH by lia. replace (n =? k)%nat with false by (symmetry; apply Nat.eqb_neq; lia). simpl. ring.
Qed.

Lemma plus_not_negative a b : 0 <= a -> 0 <= b -> 0 <= a + b.
Proof. intros A B. replace 0 with (0 + 0) by ring. apply Qcplus_le_compat; assumption. Qed.

Lemma mult_not_negative a b : 0 <= a -> 0 <= b -> 0 <= a * b.
Proof. intros A B. replace 0 with (0 * b) by ring. apply Qcmult_le_compat_r; assumption. Qed.

Lemma inverse_not_negative n : (0 < n)%nat -> 0 <= / num n.
Proof.
  intros H. destruct (Qclt_le_dec (/ num n) 0) as [L|L]; [|exact L]. exfalso.
  assert (0 <= (- / num n) * num n) as P.
  { apply mult_not_negative; [|apply num_not_negative].
    replace (- / num n) with (0 + - / num n) by ring. apply (proj1 (Qcle_minus_iff _ _)), Qclt_le_weak, L. }
  replace (- / num n * num n) with (- (1)) in P by (field; apply num_nonzero; exact H). exact (P eq_refl).
Qed.

Lemma by_difference a b d : 0 <= d -> b = a + d -> a <= b.
Proof. intros D ->. replace a with (a + 0) at 1 by ring. apply Qcplus_le_compat; [apply Qcle_refl | exact D]. Qed.

Lemma num_minus a b : (b <= a)%nat -> num (a - b) = num a - num b.
Proof. intros H. replace a with (a - b + b)%nat at 2 by lia. rewrite num_plus. ring. Qed.

Lemma is_not_negative b : 0 <= is b.
Proof. destruct b; simpl; [apply Qclt_le_weak, one_positive | apply Qcle_refl]. Qed.

(* Every remainder is hit by equally many words of complete runs. *)

Lemma sum_runs n q f : (0 < n)%nat -> sum (q * n) (fun u => f (u mod n)%nat) = num q * sum n f.
Proof.
  intros Hn. induction q as [|q IH]; simpl; [ring|].
  rewrite Nat.add_comm, sum_split, IH.
  rewrite (sum_ext n (fun i => f ((q * n + i) mod n)%nat) f); [ring|].
  intros i Hi. f_equal. rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small. exact Hi.
Qed.

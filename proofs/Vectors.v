(* Small instances of the model, computed. tests/docs/test_machine_proofs.py compares them with what the code gives. *)

From Coq Require Import Arith List Bool QArith Qcanon NArith.
From Relaxdp Require Import Numbers Path Bridge Encodings.
Import ListNotations.

Definition fraction (q : Qc) : list nat := [Z.to_nat (Qnum (this q)); Pos.to_nat (Qden (this q))].

Fixpoint all_reports (m : nat) (thresholds : list nat) : list transcript :=
  match thresholds with
  | [] => [[]]
  | T :: rest => flat_map (fun o => map (cons (T, o)) (all_reports m rest)) (seq 0 m)
  end.

Definition flat (t : transcript) : list nat := flat_map (fun seen => [fst seen; snd seen]) t.

Definition shown (rows : list (list nat)) : list (list N) := map (map N.of_nat) rows.

(* Words that are accepted: N, m, n, u, v, and the position and value that they give. *)

Definition accepts (N m : nat) : list (list nat) :=
  flat_map (fun n => flat_map (fun u => flat_map (fun v =>
    if accepted N m n u v then [[N; m; n; u; v; u mod n; v mod m]] else []) (seq 0 N)) (seq 0 N)) (seq 1 N).

(* Paths: N, m, the truth, thresholds and reports, and the probability as two numbers. *)

Definition read (N m : nat) (thresholds : list nat) : list (list nat) :=
  flat_map (fun x => map (fun t => [N; m; x] ++ flat t ++ fraction (path N m x t)) (all_reports m thresholds)) (seq 0 m).

(* Algorithm 1: the same, for thresholds that rise. *)

Definition relaxed (N m : nat) (thresholds : list nat) : list (list nat) :=
  flat_map (fun x => map (fun t => [N; m; x] ++ flat t ++ fraction (steps N m x 0 0 t)) (all_reports m thresholds))
    (seq 0 m).

(* Bridges: m, the three thresholds, the lower and the upper report, the middle one, and its probability. *)

Definition bridged (m L M U : nat) : list (list nat) :=
  flat_map (fun lower => flat_map (fun upper => map (fun v =>
    [m; L; M; U; lower; upper; v] ++ fraction (mixture m (num M / num U) (num L / num M) lower upper v))
    (seq 0 m)) (seq 0 m)) (seq 0 m).

(* The wave: bins, window, a number that lies k eighths of the way from bin b to the next one, a place, its weight. *)

Definition spread (bins window b k : nat) : list (list nat) :=
  map (fun s => [bins; window; b; k; s] ++ fraction (place bins window (fun bin =>
    if bin =? b then (num (8 - k) / num 8)%Qc else if bin =? S b then (num k / num 8)%Qc else num 0) s))
    (seq 0 (bins + window - 1)).

Open Scope N_scope.
Set Printing Width 160.
Set Printing Depth 100000.

Eval vm_compute in shown (accepts 5 3 ++ accepts 4 2).
Eval vm_compute in shown (read 4 2 [1; 3]%nat ++ read 4 3 [3; 2]%nat ++ read 5 2 [2; 4; 2]%nat ++ read 3 3 [2; 1]%nat).
Eval vm_compute in shown (relaxed 16 3 [3; 8; 13]%nat ++ relaxed 8 2 [2; 2; 7]%nat).
Eval vm_compute in shown (bridged 3 4 7 13 ++ bridged 2 1 5 9).
Eval vm_compute in shown (spread 3 2 0 3 ++ spread 3 4 1 6 ++ spread 3 4 2 0).

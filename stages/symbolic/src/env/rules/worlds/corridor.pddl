; Cells in a row; a door between two of them opens with a key that lies in a cell.
(define (domain corridor)
  (:requirements :strips :typing :negative-preconditions)
  (:types cell key)
  (:predicates (next ?a ?b - cell) (door ?a ?b - cell ?k - key) (locked ?a ?b - cell) (here ?c - cell) (lies ?k - key ?c - cell) (has ?k - key))
  (:action go
    :parameters (?from ?to - cell)
    :precondition (and (here ?from) (next ?from ?to) (not (locked ?from ?to)))
    :effect (and (here ?to) (not (here ?from))))
  (:action take
    :parameters (?k - key ?c - cell)
    :precondition (and (here ?c) (lies ?k ?c))
    :effect (and (has ?k) (not (lies ?k ?c))))
  (:action unlock
    :parameters (?from ?to - cell ?k - key)
    :precondition (and (here ?from) (locked ?from ?to) (door ?from ?to ?k) (has ?k))
    :effect (and (not (locked ?from ?to)) (not (locked ?to ?from)))))

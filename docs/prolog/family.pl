% fact(Relation, A, B) and rule(Head, Body), as world.pl asks for them.
:- multifile fact/3, rule/2.

fact(parent, ann, bea).   fact(parent, ann, carl).  fact(parent, bob, bea).   fact(parent, bob, carl).
fact(parent, bea, dora).  fact(parent, carl, emil). fact(parent, carl, fritz). fact(parent, dora, gus).
fact(grandparent, ann, dora). fact(grandparent, ann, emil). fact(grandparent, bob, emil). fact(grandparent, bea, gus).
fact(ancestor, ann, gus). fact(ancestor, bob, gus). fact(ancestor, bea, dora).

rule(g(grandparent, X, Y), [g(parent, X, Z), g(parent, Z, Y)]).
rule(g(ancestor, X, Y), [g(parent, X, Y)]).
rule(g(ancestor, X, Y), [g(parent, X, Z), g(ancestor, Z, Y)]).

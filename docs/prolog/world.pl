% Search for proofs as an environment: a state is a list of goals g(Relation, A, B), a successor is what a fact or a rule leaves of it. Half of the queries are
% facts, which are hidden while they are asked, the others have another constant in the place of an argument. An episode ends with the proof, or is given up.

:- use_module(library(apply)).
:- use_module(library(lists)).
:- use_module(library(pairs)).
:- dynamic number/2, query/2, constant/2, count/2.

successors_at_most(19).            % and giving up
atoms_at_most(10).
steps_at_most(20).

% The beginning of an episode: what is drawn is a number.
start(Drawn, world([g(R, A, B)], Label, Hidden, 0)) :-
    count(queries, Queries), count(constants, Constants),
    I is Drawn mod Queries, Rest is Drawn // Queries,
    query(I, g(R, A0, B0)),
    C is Rest // 4 mod Constants, constant(C, Other),
    (   Rest mod 2 =:= 1, corrupted(Rest // 2 mod 2, A0, B0, Other, A, B), \+ fact(R, A, B)
    ->  Label = false, Hidden = none
    ;   A = A0, B = B0, Label = true, Hidden = g(R, A, B)
    ).

corrupted(Side, A, B, Other, X, Y) :- ( Side =:= 0 -> X = Other, Y = B ; X = A, Y = Other ).

% The states that a state may become, the shortest ones where there are too many; the last is that of giving up.
successors(world(Goals, _, Hidden, _), Successors) :-
    selected(Goals, Goal, Rest),
    findall(Next, resolved(Goal, Rest, Hidden, Next), All),
    (   memberchk([], All)
    ->  Successors = [[]]
    ;   atoms_at_most(Atoms), successors_at_most(Most),
        findall(N-Next, ( member(Next, All), length(Next, N), N =< Atoms ), Keyed),
        keysort(Keyed, Sorted), pairs_values(Sorted, Short),
        ( length(Kept, Most), append(Kept, _, Short) -> true ; Kept = Short ),
        append(Kept, [given_up], Successors)
    ).

% The goal with the fewest variables.
selected(Goals, Goal, Rest) :-
    findall(N-I, ( nth0(I, Goals, G), term_variables(G, Vs), length(Vs, N) ), Keyed),
    keysort(Keyed, [_-Place|_]),
    nth0(Place, Goals, Goal, Rest).

resolved(Goal, Rest, Hidden, Next) :- known(Goal, Hidden), exclude(is_known(Hidden), Rest, Next).
resolved(Goal, Rest, _, Next) :- rule(Goal, Body), append(Body, Rest, Next).

known(g(R, A, B), Hidden) :- fact(R, A, B), g(R, A, B) \== Hidden.
is_known(Hidden, Goal) :- ground(Goal), known(Goal, Hidden), !.

% A step: the next state, the reward, and 1 where the episode terminates or 2 where it is truncated.
stepped(world(_, Label, Hidden, Steps), Next, world(Next, Label, Hidden, Now), Reward, End) :-
    Now is Steps + 1, steps_at_most(Most),
    (   Next == [] -> End = 1, ( Label == true -> Reward = 1 ; Reward = -1 )
    ;   Next == given_up -> End = 1, ( Label == false -> Reward = 1 ; Reward = -1 )
    ;   Now >= Most -> End = 2, Reward = 0
    ;   End = 0, Reward = 0
    ).

% What follows serves environments by name: a request is a line, and so is its answer.
serve :- tables, prompt(_, ''), repeat, read(Request), ( Request == end_of_file -> ! ; served(Request), fail ).

served(Request) :- ( answer(Request) -> flush_output ; throw(error(no_answer(Request), _)) ).

answer(start(Env, Drawn)) :- start(Drawn, World), shown(Env, World, 0, 0).
answer(step(Env, Action)) :-
    nb_getval(Env, World-Successors),
    nth0(Action, Successors, Next),
    stepped(World, Next, After, Reward, End),
    shown(Env, After, Reward, End).

shown(Env, World, Reward, End) :-
    World = world(Goals, _, _, _),
    ( End =:= 0 -> successors(World, Successors) ; Successors = [Goals] ),
    nb_setval(Env, World-Successors),
    format('~w ~w', [Reward, End]),
    forall(member(State, [Goals|Successors]), ( write(;), numbers(State) )),
    nl.

% Relations, constants and marks have numbers from 1, variables follow them.
numbers([]) :- !, mark(proved).
numbers(given_up) :- !, mark(given_up).
numbers(Goals) :-
    count(numbers, First),
    \+ \+ ( numbervars(Goals, 0, _), forall(member(g(R, A, B), Goals), forall(member(X, [R, A, B]), ( place(X, First, N), write(' '), write(N) ))) ).

mark(Mark) :- number(Mark, N), write(' '), write(N).
place('$VAR'(I), First, N) :- !, N is First + I + 1.
place(X, _, N) :- number(X, N).

tables :-
    findall(g(R, A, B), fact(R, A, B), Facts), tabled(query, Facts, 0, Queries),
    findall(X, ( fact(_, A, B), member(X, [A, B]) ), Xs), sort(Xs, Constants), tabled(constant, Constants, 0, Count),
    findall(R, ( fact(R, _, _) ; rule(g(R, _, _), _) ), Rs), sort(Rs, Relations),
    append([Relations, [proved, given_up], Constants], Numbered),
    forall(nth1(N, Numbered, X), assertz(number(X, N))), length(Numbered, Numbers),
    assertz(count(queries, Queries)), assertz(count(constants, Count)), assertz(count(numbers, Numbers)).

tabled(_, [], N, N).
tabled(Name, [X|Xs], I, N) :- Term =.. [Name, I, X], assertz(Term), Next is I + 1, tabled(Name, Xs, Next, N).

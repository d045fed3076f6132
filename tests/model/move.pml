/* The protocol of a move (docs/life_of_a_move.md) with the step names of the code: Hide, Copy, Hold, Fence, Drain, Commit,
 * Verify, Anew, Online, Clean, Reveal, Unfence. One shardlet goes from shard S to shard T. Routers write and read through
 * it; each may stall between any two of its steps, for as long as it likes, lose its lease and come back. The mover may die
 * at any step, and another takes up its record. Once, something goes wrong: a change is spoiled on its way to T, or the
 * fence has to be lowered again, for one of three reasons.
 *
 * Checked in every state: no acknowledged write is missed by a read that began after it, none is seen twice, none is
 * made on a shard that does not own the shardlet; and no state is left in which the job has not ended and nothing can
 * happen. Each -DWITHOUT_... takes away one rule; the test wants to see every one of them fail.
 */
#define S 0
#define T 1
#define ROUTERS 2
#define NONE 255

/* the map: */
#define TO_T   1   /* T owns the shardlet */
#define HELD   2
#define HIDE_S 4
#define HIDE_T 8

mtype = { preparing, copying, catching_up, fenced, committed, cleaning, done, failed };

byte rows[2];            /* a bit for each write, by shard */
byte acked;              /* writes that a client was told of */
byte map, epoch;         /* in the store */
byte local_epoch[2];     /* of the shards' local maps */
bool fence;              /* the triggers on S */
bool fence_row;          /* "not decided yet", for careful routers */
byte writers;            /* transactions in flight on S */
bool follows;            /* the subscription */
byte applied;            /* what it has told T; T may have made something else of it */

byte router_map[ROUTERS], router_epoch[ROUTERS];
byte running[ROUTERS];   /* the epoch of a statement that runs, or NONE */
bool lease[ROUTERS];
bool connected[ROUTERS]; /* to S, from before */

/* the job's record: */
mtype state = preparing;
bool undoing, arrived;
byte crashes, lowered, lapses;

/* Facts. The note that tells them may be older, and is read later then: it need not be on the store's disk. */
#define seen(r)  (router_epoch[r])
#define taken(r) (running[r] < router_epoch[r] -> running[r] : router_epoch[r])

#ifdef WITHOUT_SEEN
#define all_seen true
#else
#define all_seen ((!lease[0] || seen(0) >= epoch) && (!lease[1] || seen(1) >= epoch))
#endif
#define all_taken ((!lease[0] || taken(0) >= epoch) && (!lease[1] || taken(1) >= epoch))

/* What a shard answers to kintsugi.holds(e). */
#define holds(shard, e) (local_epoch[shard] <= e && (shard == T || !fence_row))

/* A router's feed: takes each map at some time, and renews the lease. A lapsed lease comes back only when the newest epoch is
 * taken. */
proctype Feed(byte r) {
  end: do
  :: atomic { router_epoch[r] != epoch -> router_map[r] = map; router_epoch[r] = epoch }
  :: atomic { !lease[r] && router_epoch[r] == epoch && taken(r) == epoch -> lease[r] = true }
  od
}

/* Time: a lease may run out at any moment. Without -DFULL one router's and once, and one router writes while both read:
 * enough for each rule to be missed. */
#ifdef FULL
#define LAPSES 2
#define SECOND_WRITE 2
#else
#define LAPSES 1
#define SECOND_WRITE 0
#endif
active proctype Clock() {
  end: do
  :: atomic { lapses < LAPSES && lease[0] -> lease[0] = false; lapses++ }
#ifdef FULL
  :: atomic { lapses < LAPSES && lease[1] -> lease[1] = false; lapses++ }
#endif
  od
}

active proctype Apply() {
  end: do
  :: atomic { follows && (rows[S] & ~applied) != 0 -> rows[T] = rows[T] | (rows[S] & ~applied); applied = rows[S] }
#ifndef UNSPOILED
  :: atomic { follows && (rows[S] & ~applied) != 0 && lowered < 1 -> lowered++; applied = rows[S] }
#endif
  od
}

inline give_up_statement() { running[r] = NONE }

proctype Client(byte r; byte mine) {
  byte m, e, before, a, b;

  if :: mine == 0 -> goto reading :: else fi;

  /* ---- a write */
again:
  atomic { m = router_map[r]; e = router_epoch[r]; running[r] = e }
  if
  :: (m & HELD) != 0 -> give_up_statement(); (router_epoch[r] != e); goto again
  :: else
  fi;
  if
  :: (m & TO_T) == 0 ->
     connected[r] = true;
     if
     :: lease[r]
     :: else ->
#ifndef WITHOUT_CAREFUL_WRITES
        if
        :: holds(S, e)
        :: !holds(S, e) -> give_up_statement(); (router_epoch[r] != e || holds(S, e)); goto again
        fi
#else
        skip
#endif
     fi;
     /* here a router may freeze */
     if
     :: atomic { !connected[r] -> give_up_statement() }; goto again
     :: atomic { connected[r] && fence -> give_up_statement() }; (router_epoch[r] != e || !fence); goto again
     :: atomic { connected[r] && !fence -> writers++ };
        atomic {
          assert((map & TO_T) == 0);  /* nobody writes where the shardlet is no longer */
          rows[S] = rows[S] | mine; acked = acked | mine; writers--; give_up_statement()
        }
     fi
  :: else -> atomic { rows[T] = rows[T] | mine; acked = acked | mine; give_up_statement() }
  fi;

  /* ---- a read: of the shardlet alone, or of all shards */
reading:
  atomic { m = router_map[r]; e = router_epoch[r]; running[r] = e; before = acked; a = 0; b = 0 }
  if
  :: (m & TO_T) == 0 -> a = rows[S]
  :: (m & TO_T) != 0 -> b = rows[T]
  :: true ->
     if
     :: (m & HIDE_S) != 0
     :: else -> a = rows[S]
     fi;
     if
     :: (m & HIDE_T) != 0
     :: else -> b = rows[T]
     fi
  fi;
  /* the answer has arrived; it is passed on, or thrown away */
  atomic {
    if
#ifdef WITHOUT_LEASES
    :: true ->
#else
    :: lease[r] || (holds(S, e) && holds(T, e)) ->
#endif
       assert((before & ~(a | b)) == 0);  /* nothing is missed */
       assert((a & b) == 0);              /* nothing is seen twice */
       give_up_statement()
    :: else -> give_up_statement(); goto reading_later
    fi
  };
  goto over;
reading_later:
  (router_epoch[r] != e || lease[r] || (holds(S, e) && holds(T, e)));
  goto reading;
over:
  skip
}

/* The mover dies here and another one reads the record. */
#define or_dies if :: crashes < 1 -> crashes++; goto taken_up :: true fi

#define release_hold atomic { if :: (map & HELD) != 0 -> map = map & ~HELD; epoch++ :: else fi }
/* Who holds the lock that opening the fence wants may wait for the map: then it is told first. */
#define lower_fence if :: true -> release_hold; or_dies :: true fi; fence = false; fence_row = false; or_dies; release_hold; or_dies

#define undecided (state != committed && state != cleaning)

active proctype Mover() {
  atomic {
    running[0] = NONE; running[1] = NONE;
    lease[0] = true; lease[1] = true;
    run Feed(0); run Feed(1); run Client(0, 1); run Client(1, SECOND_WRITE)
  }
taken_up:
  do
  :: undoing ->
     Unfence: lower_fence;
     atomic { follows = false; applied = 0 }; or_dies;
     if :: arrived -> rows[T] = 0 :: else fi; or_dies;
     atomic { map = map & ~HIDE_T; epoch++; state = failed; undoing = false }
  :: !undoing && state == preparing ->
     atomic { follows = false; applied = 0 };
     if :: arrived -> rows[T] = 0 :: else fi; or_dies;
     Hide: atomic { if :: (map & HIDE_T) == 0 -> map = map | HIDE_T; epoch++ :: else fi }; or_dies;
     local_epoch[S] = epoch; local_epoch[T] = epoch; or_dies;
#ifndef WITHOUT_TAKEN
     (all_taken); or_dies;
#endif
     atomic { arrived = true; state = copying }
  :: !undoing && state == copying ->
     if
     :: true -> Copy: atomic { rows[T] = rows[S]; applied = rows[S] }; follows = true; or_dies; state = catching_up
     :: state = preparing  /* the snapshot is gone */
     :: undoing = true
     fi
  :: !undoing && state == catching_up -> or_dies;
     if
     :: state = fenced
     :: lowered < 1 -> lowered++; follows = false; state = preparing  /* what follows the source was taken away */
     fi
  :: !undoing && state == fenced ->
     Hold: atomic { if :: (map & HELD) == 0 -> map = map | HELD; epoch++ :: else fi }; or_dies;
     if
#ifndef WITHOUT_WAITING_FOR_WRITERS
     :: atomic { writers == 0 -> Fence: fence = true; fence_row = true }
#else
     :: atomic { true -> Fence: fence = true; fence_row = true }
#endif
     :: atomic { lowered < 1 -> lowered++; map = map & ~HELD; epoch++ };  /* the lock was not to be had */
        goto taken_up
     fi;
     or_dies;
#ifndef WITHOUT_DRAIN
     Drain: ((rows[S] & ~applied) == 0); or_dies;
#endif
     if
#ifndef WITHOUT_VERIFY
     :: rows[S] != rows[T] -> Verify: undoing = true
     :: rows[S] == rows[T] ->
#else
     :: true ->
#endif
        Commit: atomic { map = TO_T | HELD | HIDE_S; epoch++; state = committed }
     :: lowered < 1 -> lowered++; undoing = true
     :: lowered < 1 -> lowered++;  /* the tables have become others: copied anew */
        lower_fence;
        Anew: state = preparing
     fi
  :: state == committed -> or_dies;
     (all_seen); or_dies;
     Online: atomic { if :: (map & HELD) != 0 -> map = map & ~HELD; epoch++ :: else fi }; or_dies;
     local_epoch[S] = epoch; local_epoch[T] = epoch; or_dies;
     fence_row = false; or_dies;
     state = cleaning
  :: state == cleaning ->
     atomic { follows = false; applied = 0 }; or_dies;
     (all_taken);
#ifndef WITHOUT_SENDING_AWAY
     atomic {  /* who has no lease and has not taken the epoch loses his connections */
       if :: taken(0) < epoch -> connected[0] = false :: else fi;
       if :: taken(1) < epoch -> connected[1] = false :: else fi
     };
#endif
     or_dies;
     Clean: rows[S] = 0; or_dies;
     fence = false; or_dies;
     Reveal: atomic { map = map & ~HIDE_S; epoch++; state = done }
  :: state == done || state == failed -> break
  od;
  if
  :: state == done -> assert((acked & ~rows[T]) == 0 && rows[S] == 0)
  :: else -> assert((acked & ~rows[S]) == 0 && rows[T] == 0)
  fi
}

// SPDX-License-Identifier: Apache-2.0

// Package simulation runs whole programs on an API server that fails, and checks that no change is
// lost, invented or reordered.
//
//	users, faults -> apitest.Server -> 1 to 7 processes: informer, handlers, controller, elector
//	                       |                                  |
//	                       '--------> truth <--- checks ------'
//
// A seed makes a script, a list of steps with the time between them. A script runs in one
// testing/synctest bubble, so a simulated hour takes milliseconds. A step refers to its object,
// process or watch by a number, not to an earlier step. So a script without some of its steps is a
// script too: a failure is shrunk to the few steps that cause it.
//
// The invariants have the numbers that the failures print:
//
//	1  A store equals the server's collection, as selected and transformed, and so do its indexes.
//	2  A handler's history of an object is a legal subsequence of the server's. A handler that is
//	   drained has got all of it.
//	3  Handlers agree with the store; a lookup in a handler is not older than the notification.
//	   Each object is resynced once in a period.
//	4  HasSynced, WaitForResourceVersion, Writes.Seen, CurrentAsOf and the store's version are
//	   never ahead of the store, and become true. CurrentAsOf is zero while a change is lost.
//	5  No key is worked on twice at once, too early, or as a dead letter; each added key is
//	   worked on.
//	6  No reconcile acts, or has a live context, while another process may lead. In an election,
//	   terms do not overlap and fencing tokens grow, and without faults there is a leader in time.
//	7  Requests and retries keep to the backoff; one watch is open when all is well. A reflector
//	   waits no longer than its backoff, and no longer than until its Group knows better. It is
//	   not silent for longer than its deadlines.
//	8  After a stop each Run returns in bounded time, and no goroutine and no watch is left. A
//	   handler that was removed is not called. Objects that were replaced are garbage.
//	9  The place of a key in an answer of devtools, its reasons, and that it has not changed are
//	   true when the answer is given. Every other process has devtools: so they change none of the
//	   above. A script has the same history with and without them.
//	10 A process that no fault has met has each change within seconds, whatever the faults and
//	   refusals of the others, with which it may share a client, a Group and a Budget. A namespace
//	   that is forbidden delays no other. A kind that is served is followed within seconds.
//	11 In a Fair that tenants share, no tenant starves, and a drain loses no key: see tenancy.
//	12 Of the processes with one Limiter, one fetches everything at a time; the next one begins
//	   when it has ended, or after a minute. The oldest is next once it has waited for so long.
//	13 A controller that notes its writes does not write a copy that an answer has shown to be old
//	   or an object while another write of it is being sent.
//	14 A process that follows namespaces has those that it was given, and lists each when it is
//	   added. Without a fault, a switch to one watch of the cluster, or back, lists nothing.
//	15 While a kind is not served, there is no request for it, and its objects leave the store,
//	   before CurrentAsOf says so.
//
// Read script_test.go and generate_test.go (the scripts), world_test.go, process_test.go and
// callbacks_test.go (the simulated programs), beside_test.go (what runs beside them),
// truth_test.go, duties_test.go and the check files (what must hold), shrink_test.go; then
// docs/reports/testing.md. A process has one informer; company_test.go makes several the informers
// of one program, with one client or more, as informer.New connects them; turns_test.go checks
// their turns. In spaces_test.go the processes follow namespaces that come and go, in
// custom_test.go a custom resource; noted_test.go has clients that note their writes.
// queues_test.go, fair_test.go and factory_test.go simulate pieces that the processes do not use.
// The reference files run the same scripts on client-go and compare the histories. contest_test.go,
// candidate_test.go and checkcontest_test.go do so with elections, pages_test.go with pages.
// devtools_test.go asks processes about keys, and compares scripts with and without that. Elections
// of ours alone also have lock_test.go (locks, and lost answers to their writes),
// coordinator_test.go and electionduties_test.go. Goroutines: those of the simulated programs, all
// in the bubble. Locking: each recorder's mutex.
//
// To see it work: go test -v -run TestSimulate ./internal/tools/simulation -seeds 20
package simulation

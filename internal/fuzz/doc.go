// Package fuzz has a cluster grow from bytes: pods, nodes, claims, pools and what belongs to them, as the API server
// would show them, through the Book to a plan. Go's fuzzer changes the bytes by what the code does with them, so that
// it comes to clusters that nobody thought of.
//
//	go test ./internal/fuzz                                  the corpus, as ordinary tests
//	go test ./internal/fuzz -fuzz FuzzCluster -fuzztime 1h   new clusters
//	make fuzz                                                all fuzz targets of the repository, FUZZTIME each
//
// It stands beside the building: it has nothing but tests.
package fuzz

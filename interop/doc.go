// Package interop tests that tether and portalocker exclude each other on one
// channel. It has only tests. They run processes of both sides on a real server.
//
// The folder that TETHER_PYTHONS names has one virtual environment per version
// of portalocker, named after the version. testdata/pythons says what is installed
// in each. Without them the tests are skipped. With TETHER_STRICT=1 in the
// environment they fail.
package interop

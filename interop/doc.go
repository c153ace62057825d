// Package interop shows that tether and portalocker exclude each other on one
// channel. It has tests only: processes of both sides meet on a real server.
//
// The folder that TETHER_PYTHONS names has one virtual environment per version
// of portalocker, named after the version; testdata/pythons has what is
// installed in each. Without them the tests are skipped, or fail when the
// environment has TETHER_STRICT=1.
package interop

package protocol_test

import (
	"fmt"

	"github.com/tetherlock/tether/protocol"
)

// A writer with the lowest id promotes. In its confirming probe it finds a reader
// that was granted meanwhile, and demotes.
func Example() {
	others := []protocol.Record{
		{ID: "c", Mode: protocol.Pending, Election: protocol.NotElected},
	}
	fmt.Println(protocol.Elect("b", false, others))

	others = []protocol.Record{
		{ID: "e", Mode: protocol.Shared, Election: protocol.NotElected},
	}
	fmt.Println(protocol.Confirm("b", others))
	// Output:
	// promote
	// demote
}

func ExampleBlocking() {
	others := []protocol.Record{
		{ID: "a", Mode: protocol.Pending, Election: protocol.NotElected},
		{ID: "c", Mode: protocol.Shared, Election: protocol.NotElected},
	}
	for _, r := range protocol.Blocking(protocol.Exclusive, others) {
		fmt.Println(r.ID, r.Mode)
	}
	// Output: c shared
}

package tether

// LeaseScripts are the names of the scripts of a lease, by their hashes.
var LeaseScripts = map[string]string{
	takeLease.Hash(): "take", renewLease.Hash(): "renew", checkLease.Hash(): "check", dropLease.Hash(): "drop",
}

package wire

import (
	"strconv"
	"strings"
)

// Client is a connection that may be a participant of a channel.
type Client struct {
	// Num is the number that the server knows it by, to kill it.
	Num int64
	// HolderID is that of a participant, which its name bears.
	HolderID string
	// Legacy is a participant up to version 3.2. All of them bear one name.
	Legacy bool
	// Name and Addr are the connection's.
	Name, Addr string
	// Subs is how many channels it is subscribed to, at least one.
	Subs int
}

// ParseClients finds in a list of clients who may be subscribed to a channel:
// its participants, and with neither HolderID nor Legacy all whose names don't
// tell what they are. Left out are who subscribes to nothing, idle sockets, and
// participants of other channels. Lines that cannot be read are passed over.
func ParseClients(channel, list string) []Client {
	var clients []Client
	before, legacy := connNameBefore(channel), LegacyConnName(channel)
	for line := range strings.SplitSeq(list, "\n") {
		c, ok := parseClient(line)
		if !ok || c.Subs < 1 {
			continue
		}
		id, named := strings.CutPrefix(c.Name, before)
		switch {
		case named && validHolderID(id):
			c.HolderID = id
		case legacy != "" && c.Name == legacy:
			c.Legacy = true
		case c.Name == IdleName || isConnName(c.Name):
			continue
		}
		// The list may be long, and is not kept for the sake of a few names.
		c.HolderID, c.Name, c.Addr = strings.Clone(c.HolderID), strings.Clone(c.Name), strings.Clone(c.Addr)
		clients = append(clients, c)
	}
	return clients
}

// parseClient reads one line: fields between blanks, each a key and a value. A
// line without a number names nobody.
func parseClient(line string) (c Client, ok bool) {
	for field := range strings.SplitSeq(strings.TrimSuffix(line, "\r"), " ") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "id":
			c.Num, _ = strconv.ParseInt(value, 10, 64)
		case "name":
			c.Name = value
		case "addr":
			c.Addr = value
		case "sub":
			c.Subs, _ = strconv.Atoi(value)
		}
	}
	return c, c.Num > 0
}

package wire

import (
	"strconv"
	"strings"
)

// Client is a connection that may be a participant of a channel.
type Client struct {
	// Num is the server's id of the connection, which CLIENT KILL ID takes.
	Num int64
	// HolderID is the holder id in the connection's name. It is empty if the
	// name is not that of a participant.
	HolderID string
	// Legacy is true for a participant of version 3.2 or older. All of them
	// use the same connection name, without a holder id.
	Legacy bool
	// Name and Addr are the connection's name and remote address.
	Name, Addr string
	// Subs is the number of channels that it is subscribed to, at least one.
	Subs int
}

// ParseClients reads a reply to CLIENT LIST and returns the connections that
// may be subscribed to a channel: its participants, and, with neither HolderID
// nor Legacy set, every connection whose name does not tell what it is. It
// leaves out connections without a subscription, idle sockets, and participants
// of other channels. It skips lines that it cannot parse.
func ParseClients(channel, list string) []Client {
	var clients []Client
	prefix, legacy := connNamePrefix(channel), LegacyConnName(channel)
	for line := range strings.SplitSeq(list, "\n") {
		c, ok := parseClient(line)
		if !ok || c.Subs < 1 {
			continue
		}
		id, named := strings.CutPrefix(c.Name, prefix)
		switch {
		case named && validHolderID(id):
			c.HolderID = id
		case legacy != "" && c.Name == legacy:
			c.Legacy = true
		case c.Name == IdleName || isConnName(c.Name):
			continue
		}
		// Substrings would keep the whole list in memory, and it may be long.
		c.HolderID, c.Name, c.Addr = strings.Clone(c.HolderID), strings.Clone(c.Name), strings.Clone(c.Addr)
		clients = append(clients, c)
	}
	return clients
}

// parseClient parses one line of CLIENT LIST: key=value fields separated by
// spaces. Without a positive id the line is not ok.
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

package tethertest

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/tetherlock/tether/wire"
)

// ttl rounds to seconds, as Redis does. miniredis cuts the rest off: a key that
// was just set with EX 30 would have 29 seconds left.
func ttl(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) != 1 {
		return wrongNumber("ttl"), true
	}
	db := e.keys.DB(c.db)
	switch left := db.TTL(args[0]); {
	case !db.Exists(args[0]):
		return number(-2), true
	case left == 0:
		return number(-1), true
	default:
		return number(int(left.Round(time.Second).Seconds())), true
	}
}

// expire lets the keys age by the time that has passed.
func (e *engine) expire() {
	now := time.Now()
	if age := now.Sub(e.looked); age > 0 {
		e.keys.FastForward(age)
		e.looked = now
	}
}

var (
	// scriptFailed is what miniredis makes of every error of a running script.
	scriptFailed = regexp.MustCompile(`(?s)^-ERR Error compiling script \(new function\): :(\d+): (.*?)(?: script: \w+, &c\.)? +stack traceback:`)
	errorCode    = regexp.MustCompile(`^[A-Z]+ `)
)

// scriptReply corrects the reply to EVAL and EVALSHA. In Redis an error that a
// command has caused keeps its code: a caller may be waiting for WRONGTYPE.
func scriptReply(reply []byte, args []string) []byte {
	found := scriptFailed.FindSubmatch(reply)
	if found == nil || len(args) < 2 {
		return reply
	}
	line, text := string(found[1]), string(found[2])
	switch {
	case errorCode.MatchString(text):
	case strings.HasPrefix(text, "Unknown Redis command"):
		text = "ERR " + text
	default:
		text = "ERR user_script:" + line + ": " + text
	}
	return []byte("-" + text + " script: " + scriptHash(args) + ", on @user_script:" + line + ".\r\n")
}

// scriptHash is the hash of the script that EVAL or EVALSHA runs.
func scriptHash(args []string) string {
	if strings.HasPrefix(strings.ToUpper(args[0]), "EVALSHA") {
		return args[1]
	}
	sum := sha1.Sum([]byte(args[1]))
	return hex.EncodeToString(sum[:])
}

local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]
local token = false
if n == 1 or ARGV[2] then
	local t = redis.call('TIME')
	local floor = t[1] * 1000000 + t[2]
	if redis.call('INCR', KEYS[1]) < floor then
		redis.call('SET', KEYS[1], string.format('%.0f', floor))
	end
	token = redis.call('GET', KEYS[1])
end
if ARGV[2] then
	redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return {n, token}

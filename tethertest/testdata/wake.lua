-- ARGV: a queue, of a wake channel and the entry of its waiter each.
for i = 1, #ARGV, 2 do
	local rest = {}
	for j = i + 3, #ARGV, 2 do
		rest[#rest + 1] = ARGV[j]
	end
	local wake = '{"message":"wake","tether":{"queue":[' .. table.concat(rest, ',') .. ']}}'
	if redis.call('PUBLISH', ARGV[i], wake) > 0 then
		return (i + 1) / 2
	end
end
return 0

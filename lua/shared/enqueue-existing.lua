-- The short way of enqueue-unique.lua: the first call for tasks that all have the policy `existing` and the same times, when each is found in
-- a usual state, or is new and pending. It makes no function, as that has its price. All else it leaves to what follows, unwritten; then
-- `known` has the holders of the locks.

local last_of_first_run = tonumber(argv[MESSAGES + count + 1])
if
  not L and policies == EXISTING and is_first_call and room == '' and copied == '0' and last_of_first_run == count and count <= 500
then
  known = call('MGET', unpack(keys, LOCKS + 1, LOCKS + count))
  local ttl, at = argv[MESSAGES + count + 3], argv[MESSAGES + count + 4]
  local result, said, n = { '', '' }, {}, 0
  local makers, made, must_be_free, is_usual = {}, {}, {}, true -- makers: by lock, the index of the task that takes it
  for i = 1, count do
    local id, lock, code, message = known[i], keys[LOCKS + i], nil, nil
    if id then
      local found = try('HMGET', task_prefix .. id, 'state', 'msg')
      code, message = FOUND_IN[found[1]], found[2]
    elseif makers[lock] then
      local maker = makers[lock]
      id, code, message = string.sub(keys[HASHES + maker], id_start), FOUND_IN.pending, argv[MESSAGES + maker]
    end
    if id then
      is_usual = code and message
      if not is_usual then break end
      said[n + 1], said[n + 2], said[n + 3] = i, code, id
      n, result[#result + 1] = n + 3, message
    else
      local key = keys[HASHES + i]
      is_usual = at == '' and not makers[key]
      if not is_usual then break end
      makers[lock], makers[key] = i, i
      made[#made + 1], must_be_free[#must_be_free + 1], must_be_free[#must_be_free + 2] = i, key, lock
    end
  end
  if is_usual and #made > 0 then is_usual = call('EXISTS', unpack(must_be_free)) == 0 end
  if is_usual then
    if #made > 0 then call('LLEN', pending) end
    -- Everything is checked. From here on the script writes.
    for m = 1, #made do
      local i = made[m]
      local key, lock = keys[HASHES + i], keys[LOCKS + i]
      local id = string.sub(key, id_start)
      call('SETEX', lock, ttl, id)
      call('HSET', key, 'msg', argv[MESSAGES + i], 'state', 'pending', 'pending_since', now_nanos, 'unique_key', lock)
      made[m] = id
    end
    spread('LPUSH', pending, made)
    if n > 0 then result[1] = cmsgpack.pack(said) end
    return result
  end
end

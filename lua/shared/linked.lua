-- Every script that needs the engine of links, as one text, so that Redis keeps the engine once. What Redis keeps, the garbage
-- collector of its Lua goes over while scripts run, also those of others.
-- The last argument names the script.
local script = table.remove(ARGV)
local L, F = {}, nil
local function make_engine()
  -- Includes shared/links.lua
end

if script == 'exchangeLinked' or script == 'exchangeFairLinked' then
  local settled = table.remove(ARGV) -- members, see only-members.lua
  L.ended_steps = table.remove(ARGV)
  if redis.call('EXISTS', KEYS[14]) == 0 then
    -- Includes shared/only-members.lua
  else -- runs
    function L.prepare() end
    make_engine()
  end
else
  make_engine()
end

if script == 'exchangeLinked' then
  -- Includes shared/exchange.lua
elseif script == 'exchangeFairLinked' then
  -- Includes shared/exchange-fair.lua
elseif script == 'fireLinked' then
  -- Includes shared/fire.lua
elseif script == 'finishSetLinked' then
  -- Includes shared/finish-set.lua
elseif script == 'addMembers' then
  -- Includes links/add-members.lua
elseif script == 'callTasks' then
  -- Includes links/call-tasks.lua
elseif script == 'cancelRun' then
  -- Includes links/cancel-run.lua
elseif script == 'check' then
  -- Includes links/check.lua
elseif script == 'closeBatch' then
  -- Includes links/close-batch.lua
elseif script == 'confirmMembers' then
  -- Includes links/confirm-members.lua
elseif script == 'deleteBatch' then
  -- Includes links/delete-batch.lua
elseif script == 'deleteRun' then
  -- Includes links/delete-run.lua
elseif script == 'deliver' then
  -- Includes links/deliver.lua
elseif script == 'enqueueLinked' then
  -- Includes links/enqueue-linked.lua
elseif script == 'enqueueUniqueLinked' then
  -- Includes shared/enqueue-unique-rows.lua
elseif script == 'growRun' then
  -- Includes links/grow-run.lua
elseif script == 'keep' then
  -- Includes links/keep.lua
elseif script == 'openBatch' then
  -- Includes links/open-batch.lua
elseif script == 'retryRun' then
  -- Includes links/retry-run.lua
elseif script == 'startRuns' then
  -- Includes links/start-runs.lua
elseif script == 'watch' then
  -- Includes links/watch.lua
end

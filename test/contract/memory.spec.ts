import { driverTest, exerciseBroker } from './exercise-broker.js';
import { memoryWorld } from './memory-world.js';

const it = driverTest(async (clock) => memoryWorld(clock));

exerciseBroker('the memory broker', it);

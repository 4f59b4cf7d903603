import { exerciseBroker } from './exercise-broker.js';
import { memoryWorld } from './memory-world.js';

exerciseBroker('the memory broker', async (clock) => memoryWorld(clock));

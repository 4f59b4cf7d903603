import { exerciseBroker } from './exercise-broker.js';
import { it } from './redis-fixture.js';

exerciseBroker('the Redis broker', it);

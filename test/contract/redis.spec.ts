import { exerciseBroker } from './exercise-broker.js';
import { exerciseDependencies } from './suite/dependencies.js';
import { it } from './redis-fixture.js';

exerciseBroker('the Redis broker', it);
exerciseDependencies(it);

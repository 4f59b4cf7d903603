import { exerciseBeside } from './beside.js';

exerciseBeside('nest11');

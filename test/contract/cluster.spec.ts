import { exerciseBroker } from './exercise-broker.js';
import { useCluster } from './cluster-fixture.js';

const cluster = useCluster();

exerciseBroker('the Redis broker on a cluster of three', (clock) => cluster.backdoor.world(clock));

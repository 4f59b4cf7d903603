import { useCluster } from './cluster-fixture.js';
import { driverTest, exerciseBroker } from './exercise-broker.js';

const cluster = useCluster();
const it = driverTest((clock) => cluster.backdoor.world(clock));

exerciseBroker('the Redis broker on a cluster of three', it);

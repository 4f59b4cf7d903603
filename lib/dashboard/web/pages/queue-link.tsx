import { paths } from '../state/router.js';
import { Text } from '../ui/text.js';

/** The name of a queue, cut where there is no room for it, as the link to its page. */
export const QueueLink = ({ name }: { name: string }) => (
  <a href={paths.queue(name)}>
    <Text value={name} titled class="cut" />
  </a>
);

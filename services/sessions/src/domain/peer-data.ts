/** Keys of headers up to here belong to the channel. Those of peer data are above. */
const LAST_CHANNEL_KEY = 255

/** Headers of route results, and addresses that are for the controller. */
const infrastructure: ReadonlySet<number> = new Set([1101, 1102, 1103, 1104, 1110, 1111, 1112, 1113])

/**
 * What the host sends to the client: the headers of a route result that belong to neither the channel nor the result.
 */
// differs: the original also passes on the key of the reply and the number of the attempt
export const hostPeerData = (headers: ReadonlyMap<number, Buffer>): Map<number, Buffer> =>
  new Map([...headers].filter(([key]) => key > LAST_CHANNEL_KEY && !infrastructure.has(key)))

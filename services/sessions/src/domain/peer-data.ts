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

/** Id and name of the identity of the client. */
const [DIALER_ID, DIALER_NAME] = [1115, 1116]

/**
 * What the client sends to the host. A router may name the identity of the client: it is passed on if it is the one that
 * this service has verified.
 */
// differs: the original passes on any name
export function dialerPeerData(
  peerData: ReadonlyMap<number, Buffer>,
  identityId: string,
): Map<number, Buffer> {
  const isVerified = peerData.get(DIALER_ID)?.toString() === identityId
  return new Map([...peerData].filter(([key]) => isVerified || (key !== DIALER_ID && key !== DIALER_NAME)))
}

/**
 * Whether a router has the end of a circuit at this address, by its answer to an inspection of the circuit. Throws if
 * the answer is not JSON.
 */
export function hasCircuitEnd(inspection: string, address: string): boolean {
  const { xgressDetails } = JSON.parse(inspection) as { xgressDetails?: unknown }
  return typeof xgressDetails === 'object' && xgressDetails !== null && Object.hasOwn(xgressDetails, address)
}

import { decodeUint32, encodeUint32, type Message } from '@overlay/channel'

/** Content types between SDKs and routers. */
export const sdkType = {
  /** Here as JSON, which only the SDK of these tests sends. */
  postureResponses: 10800,
  connect: 60783,
  stateConnected: 60784,
  stateClosed: 60785,
  data: 60786,
  dial: 60787,
  dialSuccess: 60788,
  dialFailed: 60789,
  bind: 60790,
  unbind: 60791,
  updateBind: 60794,
  healthEvent: 60795,
  connInspectRequest: 60798,
  connInspectResponse: 60799,
  bindSuccess: 60800,
  updateTokenSuccess: 60801,
  updateTokenFailed: 60802,
  updateToken: 60803,
} as const

/** Header keys between SDKs and routers. */
export const sdkHeader = {
  /** Reflected in answers. */
  uuid: 128,
  /** uint32 */
  connId: 1000,
  /** uint32 */
  sequence: 1001,
  /** In the hello: the token of the API session. */
  sessionToken: 1002,
  publicKey: 1003,
  /** uint16 */
  cost: 1004,
  /** One byte: default, required, failed. */
  precedence: 1005,
  instanceId: 1006,
  instanceSecret: 1007,
  callerId: 1008,
  /** uint32 */
  flags: 1010,
  appData: 1011,
  /** In a bind, bool: the router chooses the ids of connections. In a dial, uint32: the id. */
  routerProvidedConnId: 1012,
  /** Bool */
  healthStatus: 1013,
  listenerId: 1021,
  /** One byte: 0 unknown id, 1 dial, 2 bind. */
  connType: 1022,
  /** Bool */
  supportsInspect: 1023,
  /** Bool; in the answer to the hello: of the router. */
  supportsBindSuccess: 1024,
  marker: 1025,
  circuitId: 1026,
  stickinessToken: 1027,
  dialerIdentityId: 1034,
  dialerIdentityName: 1035,
} as const

export const connType = { dial: 1, bind: 2 } as const

/** Headers of data that travel to the other SDK. */
export const carriedHeaders: readonly number[] = [sdkHeader.uuid, sdkHeader.flags]

export const connIdOf = ({ headers }: Message): number => {
  const value = headers.get(sdkHeader.connId)
  if (!value) throw new Error('a message without a connection id')
  return decodeUint32(value)
}

/** Headers of a message on a connection. */
export const onConnection = (
  connId: number,
  ...more: readonly (readonly [number, Uint8Array | undefined])[]
): Map<number, Buffer> => {
  const present = more.flatMap(([key, value]) => (value ? [[key, Buffer.from(value)] as const] : []))
  return new Map([[sdkHeader.connId, encodeUint32(connId)], ...present])
}

/** Content types of messages about routers, links, circuits and terminators. */
export const ctrlType = {
  circuitRequest: 1000,
  /** Body: the circuit id. Header: circuitHeader.address. */
  circuitSuccess: 1001,
  fault: 1004,
  route: 1005,
  unroute: 1006,
  metrics: 1007,
  createTerminator: 1011,
  removeTerminator: 1012,
  inspectRequest: 1013,
  inspectResponse: 1014,
  /** Body: the reason. */
  circuitFailed: 1016,
  updateTerminator: 1018,
  /** Body: the circuit id. Headers: routeResultHeader. */
  routeResult: 1022,
  circuitConfirmation: 1034,
  routerLinks: 1035,
  verifyRouter: 1036,
  removeTerminators: 1038,
  quiesceRouter: 1039,
  dequiesceRouter: 1040,
  validateTerminatorsV2: 1041,
  validateTerminatorsV2Response: 1042,
  decommissionRouter: 1043,
  peerStateChanges: 1050,
  /** Answered by a result. */
  updateRouterInterfaces: 1052,
  linkState: 1053,
  alerts: 1054,
  /** Body: LinkListeners, as in the hello. */
  linkListeners: 1056,
} as const

/** Content types of messages about API sessions, sessions and tunnelers. */
export const edgeType = {
  serverHello: 20000,
  clientHello: 20001,
  /** Body: the text, or an EdgeError after extendRouterVerify. Header: errorHeader.code. */
  error: 20002,
  sessionRemoved: 20102,
  apiSessionAdded: 20200,
  apiSessionUpdated: 20201,
  apiSessionRemoved: 20202,
  apiSessionHeartbeat: 20203,
  requestClientReSync: 20204,
  createCircuit: 20205,
  createCircuitResponse: 20206,
  createTerminator: 20207,
  /** Body: the terminator id. */
  createTerminatorResponse: 20208,
  updateTerminator: 20209,
  updateTerminatorResponse: 20210,
  removeTerminator: 20211,
  removeTerminatorResponse: 20212,
  validateSessions: 20213,
  healthEvent: 20214,
  createTerminatorV2: 20216,
  createTerminatorV2Response: 20217,
  /** No body. Headers: circuitRequestHeader. */
  createCircuitV2: 20218,
  /** No body. Headers: circuitResponseHeader. */
  createCircuitV2Response: 20219,
  createTunnelCircuitV2: 20220,
  createTunnelCircuitV2Response: 20221,
  /** No body. Headers: circuitRequestHeader. */
  createCircuitV3: 20222,
  /** No body. Headers: circuitResponseHeader. */
  createCircuitV3Response: 20223,
  enrollmentCerts: 20301,
  extendRouter: 20302,
  extendRouterVerify: 20303,
  createApiSession: 20400,
  createApiSessionResponse: 20401,
  createCircuitForService: 20402,
  createCircuitForServiceResponse: 20403,
  /** Body: ServiceList.lastUpdate of the router. */
  listServices: 20404,
  serviceList: 20405,
  createTunnelTerminator: 20406,
  createTunnelTerminatorResponse: 20407,
  updateTunnelTerminator: 20408,
  updateTunnelTerminatorResponse: 20409,
  /** Body: the terminator id. */
  removeTunnelTerminator: 20410,
  removeTunnelTerminatorResponse: 20411,
  /** No body. Headers: tunnelHealthHeader. */
  tunnelHealthEvent: 20412,
  createTunnelTerminatorV2: 20413,
  createTunnelTerminatorV2Response: 20414,
  connectEvents: 20415,
} as const

/** Content types of the router data model. */
export const modelType = {
  /** Large. Header: modelHeader.subscriptionId. */
  dataState: 20500,
  /** Large. Header: modelHeader.subscriptionId. */
  changeSet: 20501,
  /** Large. */
  validate: 20503,
  validateResponse: 20504,
  subscribe: 20505,
} as const

// The same keys have other meanings on other types.

/** Headers of edgeType.createCircuitV2 and edgeType.createCircuitV3. */
export const circuitRequestHeader = {
  /** Map from uint32 to bytes. */
  peerData: 10,
  sessionToken: 11,
  /** List of texts. */
  fingerprints: 12,
  terminatorInstanceId: 13,
  apiSessionToken: 14,
  // of createCircuitV3
  identityId: 15,
  serviceId: 16,
  circuitId: 17,
} as const

/** Headers of edgeType.createCircuitV2Response and edgeType.createCircuitV3Response. */
export const circuitResponseHeader = {
  /** Map from uint32 to bytes. */
  peerData: 10,
  circuitId: 11,
  address: 12,
  /** Map of texts. */
  tags: 13,
} as const

/** Headers of ctrlType.routeResult. Further headers are peer data. */
export const routeResultHeader = {
  /** uint32 */
  attempt: 1101,
  /** Present if the route was set up. */
  success: 1102,
  error: 1103,
  /** One byte, a routeErrorCode. */
  errorCode: 1104,
  terminatorLocalAddress: 1110,
  terminatorRemoteAddress: 1111,
} as const

export const routeErrorCode = {
  generic: 0,
  invalidTerminator: 1,
  misconfiguredTerminator: 2,
  dialTimedOut: 3,
  connectionRefused: 4,
  rejectedByApplication: 5,
  nameNotResolved: 6,
  portNotAllowed: 7,
  /** The router does not have a link of the route. */
  unknownLink: 8,
  resourcesExhausted: 9,
} as const

/** Keys of peer data that controllers read. */
export const peerDataKey = {
  publicKey: 1003,
  callerId: 1008,
  appData: 1011,
  connectionMarker: 1025,
  initiatorLocalAddress: 1112,
  initiatorRemoteAddress: 1113,
  stickinessToken: 1114,
} as const

/** Headers of edgeType.apiSessionAdded and edgeType.apiSessionUpdated. */
export const syncHeader = {
  /** SYNC_STRATEGY */
  strategy: 1013,
  /** JSON of a SyncState. */
  state: 1014,
} as const

export const SYNC_STRATEGY = 'instant'

/** Chunk of a full state. Later states have greater ids. */
export interface SyncState {
  readonly id: string
  readonly isLast: boolean
  /** Counts from 0. */
  readonly sequence: number
}

/** Headers of edgeType.error. */
export const errorHeader = {
  /** uint32, an edgeErrorCode. */
  code: 1014,
  /** The circuit whose set-up has failed. Only for routers with the data model. */
  circuitId: 1026,
} as const

/** Routers forward the text of the message to their clients. */
export const edgeErrorCode = {
  internal: 1,
  invalidApiSession: 2,
  invalidSession: 3,
  wrongSessionType: 4,
  invalidEdgeRouter: 5,
  invalidService: 6,
  tunnelingNotEnabled: 7,
  invalidTerminator: 8,
  invalidPrecedence: 9,
  invalidCost: 10,
  encryptionDataMissing: 11,
} as const

/** Headers of edgeType.tunnelHealthEvent. */
export const tunnelHealthHeader = {
  terminatorId: 1022,
  /** Bool. */
  checkPassed: 1023,
} as const

/** Header of contentType.result: uint32, 1 if the controller was too busy. */
export const resultHeader = { errorCode: 10 } as const

/** Headers about the router data model. */
export const modelHeader = {
  /** Bool, in edgeType.serverHello and edgeType.clientHello: the sender has the model. */
  isSupported: 1024,
  /** uint64, in edgeType.clientHello. 0: the router has no model. */
  index: 1025,
  /** Of modelType.dataState and modelType.changeSet. Routers drop what is of another subscription. */
  subscriptionId: 1026,
} as const

/** Bits of headerKey.capabilities and, of controllers, of groupedHeader.capabilities. */
export const capability = {
  createTerminatorV2: 1,
  singleRouterLinkSource: 2,
  createCircuitV2: 3,
  /** Routers ask for the data model, and take services of tunnelers from it. */
  dataModel: 4,
  /** Routers open further connections, `ctrl.high` and `ctrl.low`. */
  groupedChannel: 5,
  /** Tokens of sessions are signed. Routers of 2.x keep no connection without it. */
  signedSessions: 6,
} as const

/** Bits of groupedHeader.capabilities of routers. */
export const routerCapability = {
  /** Uses groupedHeader.listeners. */
  multiChannel: 1,
} as const

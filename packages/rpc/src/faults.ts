import { status } from '@grpc/grpc-js'

/** The gRPC status of an HTTP status. */
const statuses = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  404: status.NOT_FOUND,
  405: status.UNIMPLEMENTED,
  406: status.INVALID_ARGUMENT,
  409: status.FAILED_PRECONDITION,
  415: status.INVALID_ARGUMENT,
  429: status.RESOURCE_EXHAUSTED,
  431: status.INVALID_ARGUMENT,
  500: status.INTERNAL,
  503: status.UNAVAILABLE,
} as const

type Declared = readonly [http: keyof typeof statuses, text: string, status?: status]

const declared = {
  COULD_NOT_VALIDATE: [400, 'The supplied request contains an invalid document'],
  HEADERS_TOO_LARGE: [431, 'The headers of the request are too large'],
  // differs: a body that is too large or too slow is the client's error, not ours
  COULD_NOT_READ_BODY: [400, 'The body of the request could not be read'],
  COULD_NOT_PARSE_BODY: [400, 'The body of the request could not be parsed'],
  INVALID_FILTER: [400, 'The filter query supplied is invalid'],
  INVALID_SORT_IDENTIFIER: [400, 'The sort order supplied is invalid'],
  INVALID_PAGINATION: [400, 'The pagination properties provided are invalid'],
  INVALID_CONTENT_TYPE: [400, 'The content type supplied is not acceptable'],
  INVALID_UUID: [400, 'The supplied UUID is invalid'],

  UNAUTHORIZED: [
    401,
    'The request could not be completed. The session is not authorized or the credentials are invalid',
  ],
  INVALID_AUTH: [401, 'The authentication request failed'],
  INVALID_AUTH_METHOD: [400, 'The supplied authentication method is invalid'],

  NOT_FOUND: [404, 'The resource requested was not found or is no longer available'],
  METHOD_NOT_ALLOWED: [405, 'The resource does not support the requested method'],
  NOT_ACCEPTABLE: [406, 'The answer has none of the types that the request accepts'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body of the request has a type that is not supported'],

  REFERENCED_ENTITY_NOT_FOUND: [400, 'A resource that the request refers to was not found'],
  ENTITY_CAN_NOT_BE_DELETED: [400, 'The resource can not be deleted'],
  ENTITY_CAN_NOT_BE_UPDATED: [400, 'The resource can not be updated'],
  CAN_NOT_DELETE_REFERENCED_ENTITY: [
    409,
    'The resource cannot be deleted/modified. Remove all referencing resources first.',
  ],
  MAX_AUTHENTICATOR_METHODS_REACHED: [409, 'The identity already has an authenticator of this method'],
  CAN_NOT_UPDATE_AUTHENTICATOR: [409, 'The authenticator can not be updated in this way'],
  CAN_NOT_UPDATE_ROUTER: [409, 'Edge routers can only be changed as edge routers'],
  INVALID_POSTURE: [409, 'The identity does not pass the posture checks of the service'],
  NO_EDGE_ROUTERS_AVAILABLE: [400, 'No edge routers are assigned and online for this use'],
  INVALID_AUTHENTICATOR_PROPERTIES: [400, 'The properties of the authenticator are invalid'],

  MFA_EXISTS: [409, 'The identity is already enrolled in MFA'],
  MFA_NOT_ENROLLED: [409, 'The identity is not enrolled in MFA'],
  MFA_INVALID_TOKEN: [400, 'The MFA code is invalid'],
  INVALID_BACKING_TOKEN_TYPE: [400, 'The session was not opened by OpenID Connect'],
  MFA_ENROLLMENT_NOT_STARTED: [404, 'The enrollment in MFA has not been started'],

  INVALID_ENROLLMENT_TOKEN: [400, 'The supplied enrollment token is not valid'],
  INVALID_ENROLL_METHOD: [400, 'The supplied enrollment method is not valid'],
  ENROLLMENT_EXISTS: [409, 'An enrollment of this method is outstanding already'],
  ENROLLMENT_EXPIRED: [400, 'The enrollment has expired'],
  ENROLLMENT_CA_NOT_VALID: [400, 'The certificate authority of the enrollment is not valid'],
  ENROLLMENT_NO_VALID_CAS: [400, 'No certificate authority is valid for this enrollment'],
  MISSING_OR_INVALID_CSR: [400, 'The certificate signing request is missing or invalid'],
  COULD_NOT_PROCESS_CSR: [400, 'The certificate signing request could not be processed'],
  EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID: [
    400,
    'The common name of the certificate signing request must be the id of the router',
  ],

  CERT_FAILED_VALIDATION: [400, 'The client certificate failed validation'],
  CERT_IN_USE: [409, 'The certificate is in use by another identity'],
  CA_ALREADY_VERIFIED: [409, 'The certificate authority is verified already'],
  EXPECTED_PEM_CERTIFICATE: [400, 'A certificate in PEM form was expected'],
  COULD_NOT_PARSE_DER_BLOCK: [400, 'The DER block could not be parsed'],
  COULD_NOT_PARSE_PEM_BLOCK: [400, 'The PEM block could not be parsed'],
  COULD_NOT_PARSE_x509_FROM_DER: [400, 'The DER block is not an X.509 certificate'],
  INVALID_COMMON_NAME: [400, 'The common name of the certificate is invalid'],
  CERTIFICATE_FAILED_VALIDATION: [400, 'The certificate failed validation'],
  CERTIFICATE_IS_NOT_CA: [400, 'The certificate is not one of a certificate authority'],
  INVALID_CERT_PEM: [400, 'The PEM of the certificate is invalid'],
  INVALID_CLIENT_CERT: [400, 'The client certificate is invalid'],
  MISSING_CERT_CLAIM: [400, 'The client certificate lacks the configured claim'],
  COULD_NOT_PARSE_PROXY_CERT: [500, 'The certificate of the proxy could not be parsed'],

  SERVER_NOT_RUNNING_IN_HA_MODE: [400, 'The controller does not run as a cluster of this kind'],
  TRANSFER_LEADERSHIP_ERROR: [500, 'The leadership could not be transferred'],
  FAILED_ER_REENROLLMENT: [500, 'The edge router could not be re-enrolled'],

  RATE_LIMITED: [
    429,
    'The resource is rate limited and the rate limit has been exceeded. Please try again later',
  ],
  SERVER_TOO_MANY_REQUESTS: [429, 'Too many requests are waiting. Please try again later'],
  UNHANDLED: [500, 'An unhandled error occurred'],
  TIMEOUT: [503, 'The request timed out', status.DEADLINE_EXCEEDED],
  UNAVAILABLE: [503, 'A part of the controller does not answer'],
  /** Between services only: all certificates that the client has presented are necessary. */
  CHAIN_REQUIRED: [401, 'The authentication request failed'],
  /** Between services only: the changes are no longer kept, or belong to another timeline. Followers must reload. */
  OUT_OF_RANGE: [503, 'The changes after this position are not known', status.OUT_OF_RANGE],
} as const satisfies Record<string, Declared>

export type FaultCode = keyof typeof declared

/** Every failure that a client can see. Code, statuses and text are wire contract. */
export const faults = Object.fromEntries(
  Object.entries<Declared>(declared).map(([code, [http, text, own = statuses[http]]]) => [
    code,
    [http, own, text] as const,
  ]),
) as Readonly<Record<FaultCode, readonly [number, status, string]>>

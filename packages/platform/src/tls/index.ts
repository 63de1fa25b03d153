export * from './connections.js'
export * from './peer-tls.js'
export * from './secure-options.js'
export * from './server-key.js'

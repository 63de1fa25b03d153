export * from './check.js'
export * from './copies.js'
export * from './maintenance-service.js'

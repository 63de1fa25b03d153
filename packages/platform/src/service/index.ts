export * from './health.js'
export * from './run-service.js'

export * from './health.js'
export * from './pause-reports.js'
export * from './refusals.js'
export * from './run-service.js'

export * from './open-tracing.js'

//! The store on a real disk: what it promises, and what it does when the disk, the process or a
//! second owner gets in the way.

mod lab;
mod model;
mod purge;
mod snapshots;

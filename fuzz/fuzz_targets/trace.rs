#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| webshop_fuzz::trace(bytes));
